package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// The formats of files with models.
const (
	formatAuto  = "auto"
	formatYAML  = "yaml"
	formatJSON  = "json"
	formatLines = "jsonl"
)

var formats = []string{formatAuto, formatYAML, formatJSON, formatLines}

// readDocuments reads models and hands an order to save each to take, in their order. A document that cannot be read as a
// model becomes a refused order. An error is one of take, or a file that cannot be read on; of YAML and JSON then nothing
// was handed out.
func readDocuments(name string, in io.Reader, format string, take func(*order) error) error {
	buffered := bufio.NewReaderSize(in, sniffed)
	skipMark(buffered)
	if format == formatAuto {
		format = guessFormat(name, buffered)
	}
	if format == formatLines {
		return readLines(name, buffered, take)
	}
	text, err := io.ReadAll(buffered)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	read := readJSON
	if format == formatYAML {
		read = readYAML
	}
	orders, err := read(name, text)
	if err != nil {
		return err
	}
	for _, order := range orders {
		if err := take(order); err != nil {
			return err
		}
	}
	return nil
}

// sniffed is how much of a file may be needed to see what it holds, in bytes.
const sniffed = 64 * 1024

// skipMark drops the mark that some editors put before UTF-8.
func skipMark(in *bufio.Reader) {
	const mark = "\xEF\xBB\xBF"
	if start, _ := in.Peek(len(mark)); string(start) == mark {
		_, _ = in.Discard(len(mark)) // just peeked at
	}
}

// guessFormat goes by the name of the file, or else by how it begins.
func guessFormat(name string, in *bufio.Reader) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return formatYAML
	case ".json":
		return formatJSON
	case ".jsonl", ".ndjson":
		return formatLines
	}
	// A short file ends before the buffer is full; what there is says enough.
	start, _ := in.Peek(sniffed)
	start = bytes.TrimLeft(start, " \t\r\n")
	line, _, _ := bytes.Cut(start, []byte("\n"))
	inner := bytes.TrimLeft(bytes.TrimLeft(start, "{["), " \t\r\n")
	switch {
	case !bytes.HasPrefix(start, []byte("{")) && !bytes.HasPrefix(start, []byte("[")):
		return formatYAML
	case start[0] == '{' && json.Valid(line):
		return formatLines
	case len(inner) > 0 && bytes.ContainsAny(inner[:1], `"{}[]`):
		return formatJSON
	default:
		return formatYAML // in its short form, as in {uid: tbl_1}
	}
}

// document is where one model stands in a file.
type fileDocument struct {
	name  string
	line  int
	lines map[string]int // path of a field to its line; only of YAML
}

// place says where a field stands: on its own line if that is known, or else where the document or its parent begins.
func (d *fileDocument) place(field string) string {
	line := d.line
	for path := field; path != ""; path = parent(path) {
		if at, known := d.lines[path]; known {
			line = at
			break
		}
	}
	return fmt.Sprintf("%s line %d", d.name, line)
}

func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".[ "))]
}

// order makes the order to save a decoded document.
func (d *fileDocument) order(value any) *order {
	definition, err := model.ParseDefinition(value)
	o := &order{
		command: model.Command{Type: model.CommandPut, UID: definition.UID, Definition: definition},
		place:   d.place,
	}
	if err != nil {
		o.refuse(err)
	}
	return o
}
