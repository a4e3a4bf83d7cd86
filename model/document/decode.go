package document

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Decode decodes one JSON value as encoding/json does, numbers as they are written, for a third of its price; false: the text is
// not one value in UTF-8. An object in a field of the outermost one that is named raw stays as it is written, a json.RawMessage in text.
func Decode(text []byte, raw ...string) (value any, valid bool) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, false
	}
	d := decoder{text: text}
	return d.value(raw), true
}

// Twice is a field that an object repeats. A decoder takes the last one.
type Twice struct {
	Field string // its path, as in an Error
	At    int    // where it is repeated, in bytes from the beginning of the text
}

// DecodeOnce decodes as Decode does, and also returns the first repeated field, also within raw values; nil: none.
// It is for text that people write: a program reads back its own output.
func DecodeOnce(text []byte, raw ...string) (value any, twice *Twice, valid bool) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, nil, false
	}
	d := decoder{text: text, strict: true}
	value = d.value(raw)
	return value, d.twice, true
}

// decoder goes through a text that is known to be valid.
type decoder struct {
	text   []byte
	at     int
	strict bool // it looks for twice
	twice  *Twice
}

func (d *decoder) value(raw []string) any {
	switch d.space() {
	case '{':
		return d.object(raw)
	case '[':
		list := []any{}
		for d.at++; d.more(']'); {
			known := d.twice
			list = append(list, d.value(nil))
			if d.twice != known {
				d.within("[" + strconv.Itoa(len(list)-1) + "]")
			}
		}
		return list
	case '"':
		return d.string()
	case 't':
		d.at += len("true")
		return true
	case 'f':
		d.at += len("false")
		return false
	case 'n':
		d.at += len("null")
		return nil
	default:
		from := d.at
		for d.at < len(d.text) && bytes.IndexByte([]byte("+-.0123456789Ee"), d.text[d.at]) >= 0 {
			d.at++
		}
		return json.Number(d.text[from:d.at])
	}
}

func (d *decoder) object(raw []string) map[string]any {
	fields := make(map[string]any)
	for d.at++; d.more('}'); {
		again := d.at
		name := d.string()
		_, stands := fields[name]
		d.space()
		d.at++ // the colon
		known := d.twice
		if d.space() == '{' && slices.Contains(raw, name) {
			from := d.at
			d.pass()
			fields[name] = json.RawMessage(d.text[from:d.at])
		} else {
			fields[name] = d.value(nil)
		}
		if d.twice != known {
			d.within(Shorten(name, MaxFound))
		} else if stands && d.strict && known == nil {
			d.twice = &Twice{Shorten(name, MaxFound), again}
		}
	}
	return fields
}

// within puts the findings in a part below the name of the part.
func (d *decoder) within(name string) {
	d.twice = &Twice{(&Error{Field: d.twice.Field}).At(name).Field, d.twice.At}
}

// space passes over spaces, and returns the rest.
func (d *decoder) space() byte {
	for d.text[d.at] <= ' ' {
		d.at++
	}
	return d.text[d.at]
}

// more goes on to the next part of an object or a list; false: it has passed over the end.
func (d *decoder) more(end byte) bool {
	if d.space() == ',' {
		d.at++
	}
	if d.space() != end {
		return true
	}
	d.at++
	return false
}

func (d *decoder) string() (text string) {
	from := d.at
	d.passString()
	if inner := d.text[from+1 : d.at-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	_ = json.Unmarshal(d.text[from:d.at], &text) // it is valid
	return text
}

func (d *decoder) passString() {
	for d.at++; d.text[d.at] != '"'; d.at++ {
		if d.text[d.at] == '\\' {
			d.at++
		}
	}
	d.at++
}

// pass passes over an object.
func (d *decoder) pass() {
	if d.strict {
		d.object(nil)
		return
	}
	for depth := 0; ; {
		switch d.text[d.at] {
		case '"':
			d.passString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if d.at++; depth == 0 {
			return
		}
	}
}
