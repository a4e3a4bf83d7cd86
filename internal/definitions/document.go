// Package definitions reads models and policies in YAML, JSON, JSON lines or English. Errors name the line of their field.
package definitions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Document is one decoded model or policy.
type Document struct {
	Value    any   // as model.ParseDefinition and policy.Parse take it
	Err      error // why it cannot be decoded; nil: it can
	Stored   bool  // it is a policy that came from Redis
	English  bool  // all of it was written in English
	SaysMail bool  // a sentence mentions e-mail
	// Position returns the place of a field, as in "tables.yaml line 7"; "": that of the document.
	Position func(field string) string
}

// InWords reports whether the rule of a model or policy is written in English or cron: then the author sees how it was read.
func (d Document) InWords() bool {
	value := d.Value
	if written, is := value.(json.RawMessage); is && (bytes.Contains(written, []byte("rrule")) || bytes.IndexByte(written, '\\') >= 0) {
		value, _ = document.Decode(written)
	}
	fields, _ := value.(map[string]any)
	rule, _ := fields["rrule"].(string)
	return rule != "" && !schedule.LooksLikeRule(rule) || fields["policy"] != nil && Document{Value: fields["policy"]}.InWords()
}

// At puts the position of its field before an error.
func (d Document) At(err error) error {
	field := ""
	if refused := (*document.Error)(nil); errors.As(err, &refused) {
		field = refused.Field
	}
	return fmt.Errorf("%s: %w", d.Position(field), err)
}

type fields struct {
	file  string
	line  int            // where the document begins
	lines map[string]int // path of a field to its line; only of YAML
}

// position returns the line of a field, or else of its parent, or of the document.
func (f *fields) position(field string) string {
	for path := field; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".[ "))] {
		if line, known := f.lines[path]; known {
			return fmt.Sprintf("%s line %d", f.file, line)
		}
	}
	return fmt.Sprintf("%s line %d", f.file, f.line)
}

func skipMark(in *bufio.Reader) {
	const mark = "\xEF\xBB\xBF"
	if start, _ := in.Peek(len(mark)); string(start) == mark {
		_, _ = in.Discard(len(mark)) // just peeked at
	}
}

const (
	maxFile     = 64 << 20 // bounds a file that is read as a whole, in bytes
	maxDocument = 4 << 20  // bounds a document, and a file of policies, in bytes
)

var errTooLarge = fmt.Errorf("expected a document of at most %d MiB and %d values, found a larger one", maxDocument>>20, maxYAMLValues)

// readAll reads a file of bounded size, without its byte order mark.
func readAll(name string, in io.Reader, most int) ([]byte, error) {
	buffered := bufio.NewReader(in)
	skipMark(buffered)
	text, err := io.ReadAll(io.LimitReader(buffered, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("%s: expected at most %d MiB, found more", name, most>>20)
	}
	return text, nil
}

// readDocuments reads JSON if that is the format, and otherwise YAML, which includes JSON.
func readDocuments(name, format string, text []byte, rootOf func(*yaml.Node) string) ([]Document, error) {
	if format == formatJSON {
		return readJSON(name, text)
	}
	return readYAML(name, text, rootOf)
}

var modelFields = []string{"uid", "payload", "refresh", "policy", "labels"}

// checkFields refuses a document that cannot be read, or has no field of a definition. It repeats nothing of the text, which may be a file of
// passwords.
func checkFields(doc Document, want string) error {
	if doc.Err != nil && doc.Value == nil {
		return doc.Err
	}
	fields, _ := doc.Value.(map[string]any)
	for name := range fields {
		if slices.Contains(modelFields, name) || policy.HasField(name) {
			return doc.Err
		}
	}
	return document.Refuse("", want, "something else")
}

// ReadOne reads a file of one document, in JSON or YAML. An error names its position.
func ReadOne(name string, in io.Reader) (Document, error) {
	docs, err := readAllGood(name, in)
	if err == nil && len(docs) != 1 {
		err = fmt.Errorf("%s: expected one document, found %d", name, len(docs))
	}
	if err != nil {
		return Document{}, err
	}
	return docs[0], nil
}

// readAllGood reads the documents of a file, and refuses it if one is wrong.
func readAllGood(name string, in io.Reader) ([]Document, error) {
	text, err := readAll(name, in, maxDocument)
	if err != nil {
		return nil, err
	}
	docs, err := readDocuments(name, formatOf(name), text, fixedRoot(""))
	for _, doc := range docs {
		if doc.Err != nil {
			return nil, doc.At(doc.Err)
		}
	}
	return docs, err
}

// ReadCalendars reads the calendars of a file: in JSON, or in YAML with many documents. An error names its position.
func ReadCalendars(name string, in io.Reader) ([]schedule.Calendar, error) {
	docs, err := readAllGood(name, in)
	if err != nil {
		return nil, err
	}
	calendars := make([]schedule.Calendar, 0, len(docs))
	for _, doc := range docs {
		calendar, err := schedule.ParseCalendar(doc.Value)
		if err != nil {
			return nil, doc.At(err)
		}
		calendars = append(calendars, calendar)
	}
	return calendars, nil
}
