// Package definitions reads models and policies as people write them: in YAML, JSON, JSON lines or English. It knows the line of
// each field, so that an error can say where to look.
package definitions

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Document is one decoded model or policy.
type Document struct {
	Value any   // as model.ParseDefinition and policy.Parse take it
	Err   error // why it cannot be decoded; nil: it can
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
