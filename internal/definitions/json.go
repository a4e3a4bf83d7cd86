package definitions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/refreshd/refreshd/model/document"
)

func readJSON(name string, text []byte) ([]Document, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	cursor := cursor{text: text, line: 1}
	var docs []Document
	for {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			end := len(text) // where the decoder found the error, or where a text that is cut off ends
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
				end = max(cursor.at, min(end, int(syntax.Offset)-1))
			}
			return nil, fmt.Errorf("%s line %d: expected JSON: %w", name, cursor.move(end), err)
		}
		values := []json.RawMessage{value}
		if value[0] == '[' {
			values = nil
			_ = json.Unmarshal(value, &values) // it was just decoded
		}
		for _, value := range values {
			// Only spaces and commas stand between two values, so the next one is found at its own place.
			begin := cursor.at + max(0, bytes.Index(text[cursor.at:], value))
			line := cursor.move(begin)
			cursor.move(begin + len(value))
			docs = append(docs, decodeJSON(&fields{file: name, line: line}, value))
		}
	}
}

type cursor struct {
	text []byte
	at   int // counted so far, in bytes
	line int // that at is on
}

// move moves on and returns the line there.
func (c *cursor) move(to int) int {
	c.line += bytes.Count(c.text[c.at:to], []byte("\n"))
	c.at = to
	return c.line
}

// decodeJSON decodes a value, or a line that may be no JSON. Errors repeat nothing of the text, which may be no definition.
func decodeJSON(at *fields, text []byte, raw ...string) Document {
	doc := Document{Position: at.position}
	if len(text) > maxDocument || overfullLine(text) > 0 {
		doc.Err = errTooLarge
		return doc
	}
	switch value, twice, valid := document.DecodeOnce(text, raw...); {
	case twice != nil:
		again := at.line + bytes.Count(text[:twice.At], []byte("\n"))
		doc.Value, doc.Err = value, document.Refuse(twice.Field, "each field once", fmt.Sprintf("it again on line %d", again))
	case valid:
		doc.Value = value
	case !utf8.Valid(text):
		doc.Err = errors.New("expected UTF-8, found other bytes")
	default:
		doc.Err = errors.New("expected one object, found more behind it")
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&doc.Value); err != nil {
			doc.Err = fmt.Errorf("expected a JSON object: %w", err)
		}
	}
	return doc
}

// ReadLines calls take with each JSON line, in order. A wrong line does not stop the others. Raw fields are valid until take returns, see
// document.Decode.
func ReadLines(name string, in io.Reader, take func(Document) error, raw ...string) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, sniffed), maxDocument)
	line := 0
	for lines.Scan() {
		line++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		if err := take(decodeJSON(&fields{file: name, line: line}, text, raw...)); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s line %d: read a line of at most %d MiB: %w", name, line+1, maxDocument>>20, err)
	}
	return nil
}
