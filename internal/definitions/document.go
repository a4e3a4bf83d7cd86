// Package definitions reads models and policies as people write them: in YAML, JSON, JSON lines or English. It knows the line of
// each field, so that an error can say where to look.
package definitions

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Document is one decoded model or policy.
type Document struct {
	Value    any   // as model.ParseDefinition and policy.Parse take it
	Err      error // why it cannot be decoded; nil: it can
	SaysMail bool  // a sentence says that somebody gets e-mail
	// Position says where a field stands, as in "tables.yaml line 7"; "": the document itself.
	Position func(field string) string
}

// At puts the position of its field before an error.
func (d Document) At(err error) error {
	field := ""
	if refused := (*document.Error)(nil); errors.As(err, &refused) {
		field = refused.Field
	}
	return fmt.Errorf("%s: %w", d.Position(field), err)
}

// fields are the lines of a document in a file.
type fields struct {
	file  string
	line  int            // where the document begins
	lines map[string]int // path of a field to its line; only of YAML
}

// position goes by the line of a field if that is known, or else by that of its parent, or of the document.
func (f *fields) position(field string) string {
	for path := field; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".[ "))] {
		if line, known := f.lines[path]; known {
			return fmt.Sprintf("%s line %d", f.file, line)
		}
	}
	return fmt.Sprintf("%s line %d", f.file, f.line)
}

// skipMark drops the mark that some editors put before UTF-8.
func skipMark(in *bufio.Reader) {
	const mark = "\xEF\xBB\xBF"
	if start, _ := in.Peek(len(mark)); string(start) == mark {
		_, _ = in.Discard(len(mark)) // just peeked at
	}
}

// ReadOne reads a file of one document, in JSON or YAML. An error names its position.
func ReadOne(name string, in io.Reader) (Document, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxPolicies+1))
	if err != nil {
		return Document{}, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxPolicies {
		return Document{}, fmt.Errorf("%s: expected at most %d MiB", name, maxPolicies>>20)
	}
	docs, err := readYAML(name, text, rooted("")) // YAML reads JSON too
	if err != nil {
		return Document{}, err
	}
	if len(docs) != 1 {
		return Document{}, fmt.Errorf("%s: expected one document, found %d", name, len(docs))
	}
	if docs[0].Err != nil {
		return Document{}, docs[0].At(docs[0].Err)
	}
	return docs[0], nil
}
