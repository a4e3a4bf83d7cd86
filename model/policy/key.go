package policy

import (
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// Key is what a limit or a circuit is counted by: a template with one placeholder, which gives each model its own key. It is
// comparable; ParseKey makes it.
type Key struct {
	Kind  KeyKind
	Field string // of the payload, or the label; empty for KeyPolicy
}

// KeyKind is where a key finds its value.
type KeyKind int

// The kinds of keys.
const (
	KeyField  KeyKind = iota // {FIELD}: a text or number of the payload
	KeyHost                  // {host(FIELD)}: the host of a URL in the payload
	KeyLabel                 // {label.NAME}: a label of the model
	KeyPolicy                // {policy}: the name of the policy
)

// The words of a template.
const (
	wordHost   = "host"
	wordLabel  = "label"
	wordPolicy = "policy"
)

const (
	fieldPattern = `([A-Za-z_][A-Za-z0-9_-]{0,63})`
	labelPattern = `([a-z][a-z0-9_.-]{0,31})`
)

// keyPattern captures the field of a host, the name of a label, or a field (`policy` too).
var keyPattern = regexp.MustCompile(`^\{ *(?:host\( *` + fieldPattern + ` *\)|label\.` + labelPattern + `|` + fieldPattern + `) *\}$`)

const wantKey = "one of {host(FIELD)}, {label.NAME}, {FIELD} and {policy}, with a FIELD of the payload"

// ParseKey reads the template of a key: {host(input_url)}, {label.tenant}, {input_format} or {policy}. A refusal is a
// *document.Error without a field.
func ParseKey(text string) (Key, error) {
	if key, ok := parseKey(text); ok {
		return key, nil
	}
	found := document.Found(text)
	if near, ok := nearKey(text); ok {
		found += "; nearest: " + near.String()
	}
	return Key{}, document.Refuse("", wantKey, found)
}

func parseKey(text string) (Key, bool) {
	parts := keyPattern.FindStringSubmatch(strings.TrimSpace(text))
	switch {
	case parts == nil:
		return Key{}, false
	case parts[1] != "":
		return Key{KeyHost, parts[1]}, true
	case parts[2] != "":
		return Key{KeyLabel, parts[2]}, true
	case parts[3] == wordPolicy:
		return Key{Kind: KeyPolicy}, true
	default:
		return Key{KeyField, parts[3]}, true
	}
}

// bareKey is a key whose braces or first word may be wrong.
var bareKey = regexp.MustCompile(`^\W*([A-Za-z]+)([(.].*?\)?)\W*$`)

// nearKey is the key that was most likely meant.
func nearKey(text string) (Key, bool) {
	if len(text) > document.MaxFound {
		return Key{}, false
	}
	if key, ok := parseKey("{" + strings.Trim(text, "{} ") + "}"); ok && key.Kind != KeyField {
		return key, true
	}
	parts := bareKey.FindStringSubmatch(text)
	if parts == nil {
		return Key{}, false
	}
	return parseKey("{" + words.NearestWord(strings.ToLower(parts[1]), []string{wordHost, wordLabel}) + parts[2] + "}")
}

// String is the template in its canonical form. ParseKey reads it back.
func (k Key) String() string {
	switch k.Kind {
	case KeyHost:
		return "{" + wordHost + "(" + k.Field + ")}"
	case KeyLabel:
		return "{" + wordLabel + "." + k.Field + "}"
	case KeyPolicy:
		return "{" + wordPolicy + "}"
	default:
		return "{" + k.Field + "}"
	}
}

// Name is what stands before the value in a key: `host`, `policy`, the name of a label, or a field of the payload.
func (k Key) Name() string {
	switch k.Kind {
	case KeyHost:
		return wordHost
	case KeyPolicy:
		return wordPolicy
	default:
		return k.Field
	}
}

// Of is the key of one model, such as `host=example.com`; empty: the model has no such value, and is not counted. payload is a
// JSON object in canonical form, policy the name of the model's policy. The key has at most 165 characters, all of them letters,
// digits and _.:/@+-=~.
func (k Key) Of(payload string, labels map[string]string, policy string) string {
	value := ""
	switch k.Kind {
	case KeyHost:
		value = hostOf(scalarField(payload, k.Field))
	case KeyLabel:
		value = labels[k.Field]
	case KeyPolicy:
		value = policy
	default:
		value = scalarField(payload, k.Field)
	}
	if value == "" {
		return ""
	}
	return k.Name() + "=" + keyValue(value)
}
