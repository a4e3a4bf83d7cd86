// Package document reads input of people and programs: objects of JSON and YAML, durations, uids, texts. It refuses invalid input
// with an Error, which has the place, the expected value and the found one.
package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DurationAt reads text as a duration and places an error at field.
func DurationAt(field, text string) (time.Duration, error) {
	duration, err := ParseDuration(text)
	return duration, Place(err, field)
}

// Place puts the field of a refusal below prefix.
func Place(err error, prefix string) error {
	if refused, is := errors.AsType[*Error](err); is {
		err = refused.At(prefix)
	}
	return err
}

// Rename renames a field of a refusal, and the fields below it.
func Rename(err error, field, to string) error {
	refused, is := errors.AsType[*Error](err)
	if !is || !strings.HasPrefix(refused.Field, field) {
		return err
	}
	return Refuse(to+strings.TrimPrefix(refused.Field, field), refused.Want, refused.Found)
}

// ScalarText renders a number, a text or null from a JSON or YAML decoder; false for anything else.
func ScalarText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "0", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case int, int64, uint64:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	default:
		return "", false
	}
}

// Error is the refusal of one input value. It says where the value was, which value was expected and which was
// found, so that the author of a document can mend it without reading code.
type Error struct {
	Field string   // path inside the document, e.g. "policy.retries[2]"; empty for the document as a whole
	Want  string   // the expected value, e.g. `a duration such as "5m"`
	Found string   // the value found, already quoted and shortened by Found
	Known []string // the fields that an object may have, of an unknown one
}

// Refuse returns the refusal of the value at a field: the expected value, and the one found (see Found).
func Refuse(field, want, found string) *Error { return &Error{Field: field, Want: want, Found: found} }

func (e *Error) Error() string {
	text := "expected " + e.Want + ", found " + e.Found
	if e.Field == "" {
		return text
	}
	return e.Field + ": " + text
}

// At returns the error with its field placed below prefix: At("policy") turns "retries[2]" into "policy.retries[2]".
func (e *Error) At(prefix string) *Error {
	at := *e
	switch {
	case at.Field == "":
		at.Field = prefix
	case strings.HasPrefix(at.Field, "["):
		at.Field = prefix + at.Field
	default:
		at.Field = prefix + "." + at.Field
	}
	return &at
}

// MaxFound bounds how much of a refused value, or of a name from outside, is repeated in an error, in bytes.
const MaxFound = 60

// Found renders a refused value for an error text: quoted, without control characters, at most 60 bytes of it.
func Found(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case string:
		if len(v) > MaxFound {
			return strconv.Quote(v[:MaxFound]) + "…"
		}
		return strconv.Quote(v)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return Shorten(fmt.Sprint(v), MaxFound) // a number of JSON may have any length
	}
}
