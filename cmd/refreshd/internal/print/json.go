// Package print writes results as JSON, by the tags of their types, or as a table.
package print

import (
	"bytes"
	"encoding"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// JSON writes one result over several lines, for people and programs alike.
func JSON(to io.Writer, result any) error { return encode(to, result, "  ") }

// JSONLine writes one result of a list on one line.
func JSONLine(to io.Writer, result any) error { return encode(to, result, "") }

func encode(to io.Writer, result any, indent string) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(plainValue(reflect.ValueOf(result)))
}

// object is a JSON object with its members in the order of the fields of its struct.
type object struct {
	names  []string
	values []any
}

// MarshalJSON writes the members in their order.
func (o *object) MarshalJSON() ([]byte, error) {
	text := bytes.NewBufferString("{")
	for i, name := range o.names {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Quote(name) + ":")
		if err := encode(text, o.values[i], ""); err != nil {
			return nil, err
		}
		text.Truncate(text.Len() - 1) // the line feed behind it
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// plainValue turns a result into values that encoding/json writes as docs/cli.md promises: a time in RFC 3339, UTC, with milliseconds, a zero time
// as null, a duration as 1h 30m; a list and a map are never null.
func plainValue(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch value := v.Interface().(type) {
	case time.Time:
		if value.IsZero() {
			return nil
		}
		return model.FormatTime(value)
	case time.Duration:
		return document.FormatDuration(value)
	case json.Marshaler, encoding.TextMarshaler, []byte, *object:
		return value
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return plainValue(v.Elem())
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plainValue(v.Index(i))
		}
		return list
	case reflect.Map:
		members := make(map[string]any, v.Len())
		for key, value := range v.Seq2() {
			members[key.String()] = plainValue(value)
		}
		return members
	case reflect.Struct:
		o := &object{}
		o.add(v, map[string]bool{})
		return o
	default:
		return v.Interface()
	}
}

// add adds the tagged fields of a struct. A field hides one of the same name in an embedded struct.
func (o *object) add(v reflect.Value, outer map[string]bool) {
	names := maps.Clone(outer)
	for field := range v.Type().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	for field, value := range v.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if embedded := reflect.Indirect(value); field.Anonymous && name == "" {
			if embedded.IsValid() && embedded.Kind() == reflect.Struct {
				o.add(embedded, names)
			}
			continue
		}
		empty := value.IsZero()
		if kind := value.Kind(); kind == reflect.Slice || kind == reflect.Map {
			empty = value.Len() == 0
		}
		if !field.IsExported() || name == "" || name == "-" || outer[name] || options == "omitempty" && empty {
			continue
		}
		o.names, o.values = append(o.names, name), append(o.values, plainValue(value))
	}
}
