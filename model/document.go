package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// document is one decoded JSON or YAML object under inspection: its fields, and the names that it may have.
type document struct {
	fields map[string]any
}

// object accepts value only as an object without fields other than known (decision 12).
func object(value any, known ...string) (document, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return document{}, &FieldError{"", "an object with " + strings.Join(known, ", "), Found(value)}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return document{}, &FieldError{shorten(name, maxFound), "one of " + strings.Join(known, ", "), "an unknown field"}
		}
	}
	return document{fields}, nil
}

// text returns a string field; absent and null are "".
func (d document) text(name string) (string, error) {
	switch value := d.fields[name].(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	default:
		return "", &FieldError{name, "a text", Found(value)}
	}
}

// scalar returns a text or a number as text; false: the field is absent.
func (d document) scalar(name string) (string, bool, error) {
	value, found := d.fields[name]
	if !found {
		return "", false, nil
	}
	text, ok := scalarText(value)
	if !ok {
		return "", false, &FieldError{name, "a text or a number", Found(value)}
	}
	return text, true, nil
}

// flag returns a boolean field; nil: absent.
func (d document) flag(name string) (*bool, error) {
	switch value := d.fields[name].(type) {
	case nil:
		return nil, nil
	case bool:
		return &value, nil
	default:
		return nil, &FieldError{name, "true or false", Found(value)}
	}
}

// oneOf returns a text field that must be one of the choices; absent is the fallback.
func (d document) oneOf(name, fallback string, choices ...string) (string, error) {
	value, err := d.text(name)
	switch {
	case err != nil:
		return "", err
	case value == "":
		return fallback, nil
	case !slices.Contains(choices, value):
		return "", &FieldError{name, strings.Join(choices, " or "), Found(value)}
	}
	return value, nil
}

// length returns a duration field; absent is the fallback, null is zero.
func (d document) length(name string, fallback time.Duration) (time.Duration, error) {
	text, found, err := d.scalar(name)
	if err != nil || !found {
		return fallback, err
	}
	return durationAt(name, text)
}

// number returns a field that is a number from low to high; false: the field is absent or null.
func (d document) number(name string, low, high float64) (float64, bool, error) {
	if d.fields[name] == nil {
		return 0, false, nil
	}
	text, _, err := d.scalar(name)
	if err != nil {
		return 0, false, err
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= low && n <= high) {
		return 0, false, &FieldError{name, fmt.Sprintf("a number from %g to %g", low, high), Found(d.fields[name])}
	}
	return n, true, nil
}

// words returns a field that is a list of texts, or one text alone; absent and null are nil.
func (d document) words(name string) ([]string, error) {
	switch value := d.fields[name].(type) {
	case nil:
		return nil, nil
	case string:
		return []string{value}, nil
	case []any:
		words := make([]string, len(value))
		for i, item := range value {
			text, ok := item.(string)
			if !ok {
				return nil, &FieldError{fmt.Sprintf("%s[%d]", name, i), "a text", Found(item)}
			}
			words[i] = text
		}
		return words, nil
	default:
		return nil, &FieldError{name, "a list of texts", Found(value)}
	}
}

// durationAt reads text as a duration and places an error at field.
func durationAt(field, text string) (time.Duration, error) {
	duration, err := ParseDuration(text)
	if err != nil {
		return 0, place(err, field)
	}
	return duration, nil
}

// place puts the field of a refusal below prefix.
func place(err error, prefix string) error {
	var refused *FieldError
	if errors.As(err, &refused) {
		err = refused.At(prefix)
	}
	return err
}

// scalarText renders what JSON and YAML decoders make of a number, a text or null; false for anything else.
func scalarText(value any) (string, bool) {
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
