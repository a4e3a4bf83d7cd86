package english

import (
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// knownErrors are the error types of refreshd and its workers. Others look like identifiers or stand in quotes.
var knownErrors = strings.Fields("permanent timeout silent network truncated stalled too_slow too_large disk input_url forbidden_address exec_start")

var (
	identifier  = regexp.MustCompile(`^[A-Za-z][\w.:/-]*\w$`)
	compound    = regexp.MustCompile(`[a-z][A-Z]|\w_\w|\w(?:\.|::)\w|.(?:Error|Exception)$`) // of several words, as none in a sentence is
	statusClass = regexp.MustCompile(`(?i)^(?:http_)?\dxx$`)
	inError     = regexp.MustCompile(`(?i)^(?:an? )?(?:http )?(.+?)(?: errors?)?$`)
	betweenAll  = regexp.MustCompile(`(?i), and |, or |, | and | or `)
)

// errorTypes reads a list of error types; classes: also classes of statuses, such as http_5xx.
func (d *draft) errorTypes(text string, classes bool) (types []any) {
	for _, part := range betweenAll.Split(text, -1) {
		name := inError.FindStringSubmatch(part)[1]
		lower, known := strings.ToLower(name), true
		switch {
		case strings.Trim(name, "0123456789") == "":
			name = "http_" + name
		case name[0] == '"':
			name = d.now.value(name)
		case lower == policy.ReasonTimeout+"s":
			name = policy.ReasonTimeout
		case slices.Contains(knownErrors, lower):
			name = lower
		default:
			known = slices.Contains(d.now.ticked, name) || isIdentifier(name) || classes && statusClass.MatchString(name)
		}
		if !known {
			d.refuse(`an error type: a known one such as timeout, one in the form of ValidationError or http_503, or one in quotes`, document.Found(part))
		}
		types = append(types, name)
	}
	return types
}

// isIdentifier reports whether a word can be nothing but a name.
func isIdentifier(word string) bool {
	return identifier.MatchString(word) && compound.MatchString(word) && !slices.Contains(words.Nouns, strings.ToLower(word)) && !statusClass.MatchString(word)
}

func setErrors(field string) func(*draft, []string) {
	return func(d *draft, slots []string) { d.set(field, d.errorTypes(slots[0], false)) }
}

var neverAgain = regexp.MustCompile(`(?i)^(?:(?:never|do not) retry|give up(?: immediately| at once)?)$`)

func (d *draft) onError(slots []string) {
	delays, found := d.doc["delays_by_error"].(map[string]any)
	if !found {
		delays = make(map[string]any)
		d.doc["delays_by_error"] = delays
	}
	for _, name := range d.errorTypes(slots[0], false) {
		field, delay := "delays_by_error."+name.(string), neverRetry
		if !neverAgain.MatchString(slots[1]) {
			delay = d.delay(field, slots[1])
		}
		delays[name.(string)] = delay
		d.setInner("delays_by_error", field)
	}
}
