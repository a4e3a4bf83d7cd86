package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader reads a decoded JSON or YAML object field by field, and remembers the first refusal. From then on its results mean nothing: ask
// Err before it is used.
type Reader struct {
	Fields map[string]any
	err    error
}

// Read begins to read a value, which must be an object without fields other than known.
func Read(value any, known ...string) *Reader {
	fields, is := value.(map[string]any)
	r := &Reader{Fields: fields}
	if !is {
		r.Refuse("", "an object with "+strings.Join(known, ", "), Found(value))
	}
	var unknown []string
	for name := range fields {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		refused := Refuse(Shorten(slices.Min(unknown), MaxFound), "one of "+strings.Join(known, ", "), "an unknown field")
		refused.Known = known
		r.Fail(refused)
		r.Fields = nil
	}
	return r
}

// Err is the first refusal; nil: there is none so far.
func (r *Reader) Err() error { return r.err }

// Fail notes an error, if it is one.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Refuse notes a refusal, as the function of that name returns it.
func (r *Reader) Refuse(field, want, found string) { r.Fail(Refuse(field, want, found)) }

// Require refuses the value of a field unless it is right.
func (r *Reader) Require(right bool, field, want string) {
	if !right {
		r.Refuse(field, want, Found(r.Fields[field]))
	}
}

// Text returns a string field; absent and null are "".
func (r *Reader) Text(name string) string {
	text, is := r.Fields[name].(string)
	r.Require(is || r.Fields[name] == nil, name, "a text")
	return text
}

// Time returns a field that is an RFC 3339 time, in UTC and whole milliseconds; absent, null and empty are the zero time.
func (r *Reader) Time(name string) time.Time {
	text := r.Text(name)
	at, err := time.Parse(time.RFC3339, text)
	r.Require(err == nil || text == "", name, "an RFC 3339 time")
	return at.UTC().Truncate(time.Millisecond)
}

// Flag returns a boolean field; nil: absent.
func (r *Reader) Flag(name string) *bool {
	flag, is := r.Fields[name].(bool)
	if is {
		return &flag
	}
	r.Require(r.Fields[name] == nil, name, "true or false")
	return nil
}

// Scalar returns a text or a number as text; false: the field is absent.
func (r *Reader) Scalar(name string) (text string, found bool) {
	value, found := r.Fields[name]
	if !found {
		return "", false
	}
	text, is := ScalarText(value)
	r.Require(is, name, "a text or a number")
	return text, is
}

// Words returns a field that is a list of texts, or one text alone; absent and null are nil.
func (r *Reader) Words(name string) []string {
	list, is := r.Fields[name].([]any)
	if text, alone := r.Fields[name].(string); alone {
		return []string{text}
	}
	r.Require(is || r.Fields[name] == nil, name, "a list of texts")
	if !is {
		return nil
	}
	words := make([]string, len(list))
	for i, item := range list {
		if words[i], is = item.(string); !is {
			r.Refuse(fmt.Sprintf("%s[%d]", name, i), "a text", Found(item))
		}
	}
	return words
}

// OneOf returns a text field that must be one of the choices; absent is the fallback.
func (r *Reader) OneOf(name, fallback string, choices ...string) string {
	value := cmp.Or(r.Text(name), fallback)
	r.Require(value == fallback || slices.Contains(choices, value), name, strings.Join(choices, " or "))
	return value
}

// Length returns a duration field; absent is the fallback, null is zero.
func (r *Reader) Length(name string, fallback time.Duration) time.Duration {
	text, found := r.Scalar(name)
	if !found {
		return fallback
	}
	length, err := DurationAt(name, text)
	r.Fail(err)
	return length
}

// LengthWithin returns a duration field of a length between two; absent and null are zero.
func (r *Reader) LengthWithin(name string, low, high time.Duration) time.Duration {
	length := r.Length(name, 0)
	if r.Fields[name] != nil && (length < low || length > high) {
		r.Refuse(name, "a duration from "+FormatDuration(low)+" to "+FormatDuration(high), Found(r.Fields[name]))
	}
	return length
}

// Number returns a field that is a number from low to high; false: the field is absent or null.
func (r *Reader) Number(name string, low, high float64) (n float64, found bool) {
	return number(r, name, "a number", func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }, low, high)
}

// Int returns a field that is a whole number from low to high; absent and null are zero.
func (r *Reader) Int(name string, low, high int) int {
	n, _ := number(r, name, "a whole number", strconv.Atoi, low, high)
	return n
}

func number[T int | float64](r *Reader, name, kind string, parse func(string) (T, error), low, high T) (n T, found bool) {
	text, found := r.Scalar(name)
	if !found || r.Fields[name] == nil {
		return 0, false
	}
	n, err := parse(text)
	if within := n >= low && n <= high; err != nil || !within { // a NaN is not
		r.Refuse(name, fmt.Sprintf("%s from %v to %v", kind, low, high), Found(r.Fields[name]))
		return 0, false
	}
	return n, true
}
