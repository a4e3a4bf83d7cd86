package document

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText bounds every text that a worker or an application may leave with a model, in bytes.
const MaxText = 500

// OneLine makes outside text Harmless, on one line.
func OneLine(text string) string { return Harmless(text, "") }

// Harmless makes outside text harmless to a terminal and to a log: valid UTF-8 with a space for each control character that is not to be kept, and
// for each that turns the direction of writing.
func Harmless(text, keep string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case ' ' <= r && r <= '~' || strings.ContainsRune(keep, r): // at once, because nearly all are
			return r
		case unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			return ' '
		default:
			return r
		}
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Shorten makes outside text fit to be stored and shown: OneLine of at most limit bytes, without spaces around it.
func Shorten(text string, limit int) string {
	clean := strings.TrimSpace(OneLine(text))
	if len(clean) <= limit {
		return clean
	}
	cut := limit - len("…")
	for !utf8.RuneStart(clean[cut]) {
		cut--
	}
	return clean[:cut] + "…"
}

// Cut shortens a text to at most width characters.
func Cut(text string, width int) string {
	switch {
	case utf8.RuneCountInString(text) <= width:
		return text
	case width < 1:
		return ""
	default:
		return string([]rune(text)[:width-1]) + "…"
	}
}

// Quote renders a text as JSON.
func Quote(text string) string {
	if strings.IndexFunc(text, escaped) < 0 {
		return `"` + text + `"`
	}
	quoted, _ := json.Marshal(text) // a string always marshals
	return string(quoted)
}

func escaped(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\\<>&`, r) }

var uidPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@/+=~-]{0,199}$`)

// IsUID reports whether a text could be the uid of a model. Names of policies have the same form.
func IsUID(text string) bool { return uidPattern.MatchString(text) }

// ValidateUID accepts the uid of a model: 1-200 letters, digits and _.:@/+=~- , beginning with a letter or digit, so that
// it can appear in a Redis key, a command line and a log without being anything else.
func ValidateUID(uid string) error { return ValidateID("uid", uid) }

// ValidateID accepts in a field any possible uid of a model.
func ValidateID(field, id string) error {
	if IsUID(id) {
		return nil
	}
	return Refuse(field, "1-200 letters, digits or _.:@/+=~- (first a letter or digit)", Found(id))
}
