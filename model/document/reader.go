package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader reads an object field by field, and remembers the first refusal: what is read behind that counts for nothing.
type Reader struct {
	Object
	err error
}

// Read begins to read a value, which must be an object without fields other than known.
func Read(value any, known ...string) *Reader {
	object, err := readObject(value, known)
	return &Reader{object, err}
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
	text, err := r.Object.Text(name)
	r.Fail(err)
	return text
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
	text, found, err := r.Scalar(name)
	if err == nil && found {
		fallback, err = DurationAt(name, text)
	}
	r.Fail(err)
	return fallback
}

// LengthWithin returns a duration field of a length between two; absent and null are zero, which must be one of these.
func (r *Reader) LengthWithin(name string, low, high time.Duration) time.Duration {
	length := r.Length(name, 0)
	r.Require(length >= low && length <= high, name, "a duration from "+FormatDuration(low)+" to "+FormatDuration(high))
	return length
}

// Number returns a field that is a number from low to high; false: the field is absent or null.
func (r *Reader) Number(name string, low, high float64) (float64, bool) {
	n, found, err := r.Object.Number(name, low, high)
	r.Fail(err)
	return n, found
}

// Int returns a field that is a whole number from low to high; absent and null are zero.
func (r *Reader) Int(name string, low, high int) int {
	n, _, err := number(r.Object, name, "a whole number", strconv.Atoi, low, high)
	r.Fail(err)
	return n
}
