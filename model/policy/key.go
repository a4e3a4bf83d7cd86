package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// Key is the template for the keys of a limit or circuit. Each model gets its key by the one placeholder. It is comparable; ParseKey makes it.
type Key struct {
	Kind  KeyKind
	Field string // of the payload, or the label; empty for KeyPolicy
}

// KeyKind is where a key finds its value.
type KeyKind int

// The kinds of keys.
const (
	keyField  KeyKind = iota // {FIELD}: a text or number of the payload
	KeyHost                  // {host(FIELD)}: the host of a URL in the payload
	KeyLabel                 // {label.NAME}: a label of the model
	KeyPolicy                // {policy}: the name of the policy
)

const (
	wordHost   = "host"
	wordLabel  = "label"
	wordPolicy = "policy"
)

const (
	fieldPattern = `([A-Za-z_][A-Za-z0-9_-]{0,63})`
	labelPattern = `([a-z][a-z0-9_.-]{0,31})`
)

var keyPattern = regexp.MustCompile(`^\{ *(?:host\( *` + fieldPattern + ` *\)|label\.` + labelPattern + `|` + fieldPattern + `) *\}$`)

const wantKey = "one of {host(FIELD)}, {label.NAME}, {FIELD} and {policy}, with a FIELD of the payload"

// ParseKey reads a template: {host(input_url)}, {label.tenant}, {input_format} or {policy}. A refusal is a *document.Error without a field.
func ParseKey(text string) (Key, error) {
	if key, ok := parseKey(text); ok {
		return key, nil
	}
	near, ok := parseKey("{" + strings.Trim(text, "{} ") + "}")
	if parts := bareKey.FindStringSubmatch(text); parts != nil && (!ok || near.Kind == keyField) {
		near, ok = parseKey("{" + words.NearestWord(strings.ToLower(parts[1]), []string{wordHost, wordLabel}) + parts[2] + "}")
	} else {
		ok = ok && near.Kind != keyField
	}
	found := document.Found(text)
	if ok && len(text) <= document.MaxFound {
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
		return Key{keyField, parts[3]}, true
	}
}

var bareKey = regexp.MustCompile(`^\W*([A-Za-z]+)([(.].*?\)?)\W*$`)

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

// Name is the part before the value: `host`, `policy`, the name of a label, or a field of the payload.
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

// Of returns the key of a model, such as `host=example.com`; empty: the model has no value for it, and is not counted. payload is canonical JSON,
// policy a name. The key has at most 165 letters, digits and _.:/@+-=~.
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

const keyCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/@+-"

const (
	maxKeyValue  = 100 // bytes of a value that a key contains unchanged
	maxKeyBegins = 40  // bytes of the beginning of any other
)

// keyValue makes a value fit for a Redis key: an invalid one becomes its allowed beginning, `~` and 12 hex digits of its SHA-256.
func keyValue(value string) string {
	allowed := len(value) - len(strings.TrimLeft(value, keyCharacters))
	if allowed == len(value) && len(value) <= maxKeyValue {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return value[:min(allowed, maxKeyBegins)] + "~" + hex.EncodeToString(sum[:6])
}

// hostOf is the host of an absolute URL in lower case, without user, port and final dot; an IP address in its shortest form. What follows the host may
// be anything.
func hostOf(text string) string {
	text = document.TrimAddress(text)
	if begin := strings.Index(text, "://") + len("://"); begin >= len("://") {
		if end := strings.IndexAny(text[begin:], "/?#"); end >= 0 {
			text = text[:begin+end]
		}
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return Host(parsed.Hostname())
}

// Host is the name of a host as keys have it.
func Host(name string) string {
	name = strings.TrimSuffix(name, ".")
	if address, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return address.Unmap().String()
	}
	return strings.ToLower(name)
}

// scalarField is a text or number at the top of a JSON object, or empty. It reads no further than it must, mostly without memory.
func scalarField(object, name string) string {
	raw, rest := "", strings.TrimPrefix(strings.TrimLeft(object, jsonBlanks), "{")
	for key := ""; len(key) < 2 || key[1:len(key)-1] != name; {
		if key, rest = cutJSON(strings.TrimLeft(rest, jsonBlanks+",")); key == "" || key[0] != '"' {
			return ""
		}
		if raw, rest = cutJSON(strings.TrimLeft(rest, jsonBlanks+":")); raw == "" {
			return ""
		}
	}
	switch {
	case raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9':
		return raw
	case raw[0] != '"':
		return ""
	case strings.IndexByte(raw, '\\') < 0:
		return raw[1 : len(raw)-1]
	}
	text := ""
	if json.Unmarshal([]byte(raw), &text) != nil {
		return ""
	}
	return text
}

const jsonBlanks = " \t\r\n"

func cutJSON(text string) (value, rest string) {
	end, depth := 0, 0
	for end < len(text) {
		switch text[end] {
		case '"':
			for end++; end < len(text) && text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			if end >= len(text) {
				return "", ""
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			if depth == 0 {
				end += len(text[end:]) - len(strings.TrimLeft(text[end:], "0123456789+-.Eaeflnrstu")) // a number, true, false or null
				return text[:end], text[end:]
			}
		}
		if end++; depth <= 0 {
			break
		}
	}
	if depth != 0 {
		return "", ""
	}
	return text[:end], text[end:]
}
