package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model/document"
)

const (
	// maxYAMLValues bounds the values of a document. Each use of an alias counts, so a few lines cannot become gigabytes.
	maxYAMLValues = 100_000
	// maxYAMLGrowth bounds the values for each byte of a file: many documents may share small anchors, but not a large one.
	maxYAMLGrowth = 10
	// maxYAMLDepth also ends an alias that contains itself.
	maxYAMLDepth = 100
	// maxYAMLPath bounds the path of a field, in bytes; deeper fields have the position of their parent. Otherwise a few long names and many values
	// would fill the memory.
	maxYAMLPath = 200
)

// readYAML reads documents, each an object or a list of objects. rootOf returns the path of an object, which distinguishes payloads from policies.
func readYAML(name string, text []byte, rootOf func(*yaml.Node) string) (docs []Document, err error) {
	if line := overfullLine(text); line > 0 {
		return nil, fmt.Errorf("%s line %d: %w", name, line, errTooLarge)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	left := maxYAMLValues + maxYAMLGrowth*len(text)
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			// The parser cannot continue behind an error, so the whole file is refused.
			return nil, fmt.Errorf("%s %s", name, withQuotes(strings.TrimPrefix(err.Error(), "yaml: "), text))
		}
		items := node.Content
		if len(items) == 0 || isNull(items[0]) {
			continue
		}
		if items[0].Kind == yaml.SequenceNode {
			items = items[0].Content
		}
		for _, item := range items {
			at := &fields{file: name, line: item.Line, lines: make(map[string]int)}
			most := min(maxYAMLValues, left)
			scan := yamlScan{lines: at.lines, left: most, bytes: maxDocument}
			doc := Document{Position: at.position}
			doc.Value, doc.Err = scan.value(item, rootOf(item), 0)
			left -= most - max(0, scan.left)
			docs = append(docs, doc)
		}
	}
}

var namedAnchor = regexp.MustCompile(`anchor '([^']*)'`)

var (
	yamlLine = regexp.MustCompile(`^line (\d+): `)
	// unquoted matches a field whose text YAML takes for something else: it begins with *, @, ` or %, also in a list or on a line of its own, or has a
	// colon before a space.
	unquoted = regexp.MustCompile(`^[\s{-]*(?:[^"'\s#]+: .*)?\S+:\s+(?:\[?\s*(?:\*\W|\*$|\*\w+ +[^\s,#]|[@\x60%])|` +
		`[^"'|>&!#{\[ ][^"'#]*:\s)|^[\s-]+(?:\*\W|[@\x60%])`)
)

// withQuotes adds what to do to an error of YAML, and its line, if that has such a field. It repeats nothing of the text, which may be no definition.
func withQuotes(problem string, text []byte) string {
	at, isText := 1, unquoted // YAML does not name the first line
	if found := yamlLine.FindStringSubmatch(problem); found != nil {
		at, _ = strconv.Atoi(found[1])
	}
	if found := namedAnchor.FindStringSubmatch(problem); found != nil { // on any line: the error has none
		at, isText = 0, regexp.MustCompile(`(?:\brrule["']?:\s+\[?\s*|^\s+)\*`+found[1]+`(?:\W|$)|`+`\*`+found[1]+` +[^\s,#]`)
		problem = namedAnchor.ReplaceAllLiteralString(problem, "anchor")
	}
	number := 0
	for line := range bytes.Lines(text) {
		if number++; (at == 0 || at == number) && isText.Match(bytes.TrimRight(line, "\r\n")) {
			return fmt.Sprintf("line %d: %s: put the text in quotes, as in rrule: \"*/5 * * * *\" or \"@daily\"", number, yamlLine.ReplaceAllLiteralString(problem, ""))
		}
	}
	return problem
}

func fixedRoot(root string) func(*yaml.Node) string { return func(*yaml.Node) string { return root } }

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

// yamlScan turns nodes into plain values, and notes the line of each field. Outside of a payload every scalar stays text: YAML would turn an
// unquoted dtstart into a timestamp and some uids into numbers.
type yamlScan struct {
	lines map[string]int
	left  int // values
	bytes int // of names and values
}

func (s *yamlScan) value(node *yaml.Node, path string, depth int) (any, error) {
	if s.left--; s.left < 0 || depth > maxYAMLDepth {
		want := fmt.Sprintf("at most %d values and %d for each byte of the file, %d deep, with aliases written out",
			maxYAMLValues, maxYAMLGrowth, maxYAMLDepth)
		return nil, &document.Error{Field: path, Want: want, Found: "more"}
	}
	if s.bytes -= len(node.Value); s.bytes < 0 {
		return nil, errTooLarge
	}
	switch node.Kind {
	case yaml.AliasNode:
		return s.value(node.Alias, path, depth+1)
	case yaml.MappingNode:
		fields := make(map[string]any, len(node.Content)/2)
		return fields, s.mapping(node, path, depth, fields)
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			at := below(path, fmt.Sprintf("[%d]", i))
			s.note(at, item.Line)
			var err error
			if list[i], err = s.value(item, at, depth+1); err != nil {
				return list, err
			}
		}
		return list, nil
	default:
		return scalar(node, path)
	}
}

// mapping reads the fields of node that are not in fields yet. The mapping goes before those that it merges, and these in their order.
func (s *yamlScan) mapping(node *yaml.Node, path string, depth int, fields map[string]any) error {
	own := make(map[string]bool, len(node.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		text := key
		if key.Kind == yaml.AliasNode {
			text = key.Alias
		}
		if text.Kind != yaml.ScalarNode || isNull(text) {
			return &document.Error{Field: path, Want: "names of fields", Found: fmt.Sprintf("something else on line %d", text.Line)}
		}
		s.bytes -= len(text.Value)
		name, at := text.Value, fieldBelow(path, text.Value)
		if own[name] {
			return &document.Error{Field: at, Want: "each field once", Found: fmt.Sprintf("it again on line %d", key.Line)}
		}
		own[name] = true
		if _, overridden := fields[name]; overridden {
			continue
		}
		s.note(at, key.Line)
		var err error
		if fields[name], err = s.value(value, at, depth+1); err != nil {
			return err
		}
	}
	return s.merge(merged, path, depth, fields)
}

func (s *yamlScan) merge(values []*yaml.Node, path string, depth int, fields map[string]any) error {
	for _, value := range values {
		if s.left--; s.left < 0 || depth > maxYAMLDepth {
			return &document.Error{Field: path, Want: "merge keys that end", Found: "one that merges itself"}
		}
		for value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		var err error
		switch value.Kind {
		case yaml.MappingNode:
			err = s.mapping(value, path, depth+1, fields)
		case yaml.SequenceNode:
			err = s.merge(value.Content, path, depth+1, fields)
		default:
			err = &document.Error{Field: path, Want: "a mapping to merge", Found: document.Found(value.Value)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// note keeps the first line of a field: the override, not the original.
func (s *yamlScan) note(path string, line int) {
	if _, known := s.lines[path]; !known {
		s.lines[path] = line
	}
}

func fieldBelow(path, name string) string {
	if path == "" {
		return name
	}
	return below(path, "."+name)
}

func below(path, part string) string {
	if len(path)+len(part) > maxYAMLPath {
		return path
	}
	return path + part
}

func within(path, field string) bool {
	rest, found := strings.CutPrefix(path, field)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// written matches numbers of YAML 1.2. YAML 1.1 also reads 01234, 0b11 and 1_000 as numbers, but digits after a leading zero are rather the code of
// a place or a file.
var written = regexp.MustCompile(`^(0o[0-7]+|0x[0-9a-fA-F]+|[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)

func scalar(node *yaml.Node, path string) (any, error) {
	payload := within(path, "payload")
	switch tag := node.ShortTag(); tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		value := strings.ToLower(node.Value)
		switch {
		case !payload && !within(path, policyRoot):
			return node.Value, nil
		case value != "true" && value != "false": // with the tag
			return nil, document.Refuse(path, "true or false", document.Found(node.Value)+": quote it for a text")
		}
		return value == "true", nil
	case "!!int", "!!float":
		if !payload || node.Style == 0 && !written.MatchString(node.Value) {
			return node.Value, nil
		}
		return number(node, path)
	case "!!str", "!!timestamp", "!!binary":
		return node.Value, nil
	default:
		return nil, &document.Error{Field: path, Want: "a plain value", Found: "one with the tag " + document.Found(tag)}
	}
}

// number keeps the digits as written if JSON has the same form, and refuses other numbers.
func number(node *yaml.Node, path string) (any, error) {
	if json.Valid([]byte(node.Value)) {
		return json.Number(node.Value), nil
	}
	found, want := document.Found(node.Value)+": quote it for a text", "a number as JSON has it"
	var value any
	if node.Decode(&value) != nil {
		return nil, document.Refuse(path, "a number", found)
	}
	text, err := json.Marshal(value)
	if err != nil {
		want = "a number that JSON can hold"
	} else if len(node.Value) <= exactDigits {
		found += ", or write " + string(text)
	}
	return nil, document.Refuse(path, want, found)
}

// exactDigits are the digits that a float64 holds exactly.
const exactDigits = 15

// overfullLine returns the line of the first document with more separators than a document may have values; 0: none. Such a document would take a hundred
// times its size. Each document of a list, and each object, is counted by itself.
func overfullLine(text []byte) (line int) {
	separators, begins, at := 0, 1, 0
	for written := range bytes.Lines(text) {
		at++
		item := bytes.TrimSpace(written)
		if len(item) > 0 && item[0] == '-' && (len(item) == 1 || item[1] == '-' || bytes.IndexByte(item, ':') > 0) {
			separators, begins = 0, at
		}
		for object := range bytes.SplitAfterSeq(written, []byte("{")) {
			if separators += bytes.Count(object, []byte(",")); separators > maxYAMLValues {
				return begins
			}
			if bytes.HasSuffix(object, []byte("{")) {
				separators = 0
			}
		}
		separators++
	}
	return 0
}
