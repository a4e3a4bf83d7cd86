package definitions

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// The formats of files with models. FormatAuto detects the format by the name of the file, or by its beginning.
const (
	FormatAuto  = "auto"
	formatYAML  = "yaml"
	formatJSON  = "json"
	formatLines = "jsonl"
)

// Formats are the formats that ReadModels knows.
var Formats = []string{FormatAuto, formatYAML, formatJSON, formatLines}

// formatOf returns the format of a file by its name; empty: the name says nothing.
func formatOf(name string) string {
	return map[string]string{
		".yaml": formatYAML, ".yml": formatYAML, ".json": formatJSON, ".jsonl": formatLines, ".ndjson": formatLines,
	}[strings.ToLower(filepath.Ext(name))]
}

// Model is one model of a file.
type Model struct {
	Document   // Err also holds why the model is refused; nil: it is well defined
	Definition model.Definition
}

func parseModel(doc Document) Model {
	m := Model{Document: doc}
	if m.Err = checkFields(doc, "a model, which has a uid"); m.Err == nil {
		m.Value, m.Err = definitionOf(doc.Value)
	}
	if m.Err == nil {
		m.Definition, m.Err = model.ParseDefinition(m.Value)
	}
	return m
}

// ReadModels calls take with each model, in order, or with what `refreshd model get -o json` prints of it. A refused model has an Err. An error of
// ReadModels is one of take, or says that the file cannot be read. YAML and JSON are read to their end before the first call.
func ReadModels(name string, in io.Reader, format string, take func(Model) error) error {
	buffered := bufio.NewReaderSize(in, sniffed)
	skipMark(buffered)
	if format == FormatAuto {
		format = cmp.Or(formatOf(name), guessFormat(buffered))
	}
	if format == formatLines {
		return ReadLines(name, buffered, func(doc Document) error { return take(parseModel(doc)) }, "policy")
	}
	text, err := readAll(name, buffered, maxFile)
	if err != nil {
		return err
	}
	docs, err := readDocuments(name, format, text, fixedRoot(""))
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if err := take(parseModel(doc)); err != nil {
			return err
		}
	}
	return nil
}

// sniffed bounds the beginning that guessFormat reads, in bytes.
const sniffed = 64 * 1024

func guessFormat(in *bufio.Reader) string {
	// A short file ends before the buffer is full.
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

// StateFields are the fields that `refreshd model get -o json`, or ls, shows beside the definition of a model. A document written by hand has none of
// them: they are refused there, as every unknown field is.
var StateFields = []string{
	"status", "refresh_at", "refresh_why", "refresh_for", "not_before", "planned_at",
	"attempt_uid", "attempt_no", "started_at", "deadline_at", "processing_at", "worker", "again", "outdated",
	"refresh_disabled_until_update", "refresh_disabled_user_friendly_reason", "refresh_disabled_by", "refresh_disabled_who",
	"user_friendly_status", "progress", "last_success_at", "freshness", "stale_at", "fresh_since", "failing_since", "final_failure_at", "last_attempt_uid", "deferrals", "deaths",
	"trying_since", "gives_up_at", "because", "last_reason", "total_retries", "successful_retries", "retried_cycles", "retry_success_rate",
	"phase", "parked_by", "parked_since", "reserved", "counted_by", "host", inForce, "rev", "fault", "rejected", "missing",
}

// inForce shows the policy of a model where the field policy is only its name.
const inForce = "policy_definition"

// distinctive are fields of every shown model, and of nothing else.
var distinctive = []string{"status", "rev", inForce}

// definitionOf returns the definition in a shown model, so that it can be saved again; other values stay as they are.
func definitionOf(value any) (any, error) {
	fields, _ := value.(map[string]any)
	for _, name := range distinctive {
		if _, found := fields[name]; !found {
			return value, nil
		}
	}
	definition := maps.Clone(fields)
	for _, name := range StateFields {
		delete(definition, name)
	}
	if name, _ := fields["policy"].(string); policy.IsInline(name) { // the name lives no longer than its last model
		own, err := policy.ParseStored(fields[inForce])
		if err != nil {
			return nil, document.Place(err, inForce)
		}
		definition["policy"] = canonicalFields(own)
	}
	return definition, nil
}
