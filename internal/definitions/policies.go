package definitions

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/policy/english"
)

const policyRoot = "policy"

// looksLikeFields matches the first line of a policy in YAML, or of a list of them: a field name has no spaces.
var looksLikeFields = regexp.MustCompile(`^(-[ \t]+)?["']?[A-Za-z_]+["']?[ \t]*:([ \t]|$)`)

// ReadPolicies reads the policies of a file: in JSON, in YAML with many documents, or one in English. They are decoded, but not
// yet known to be policies. An error names its position.
func ReadPolicies(name string, in io.Reader) ([]Document, error) {
	text, err := readAll(name, in, maxDocument)
	if err != nil {
		return nil, err
	}
	first := "" // the first line that says something
	for line := range bytes.Lines(text) {
		trimmed := strings.TrimSpace(string(line))
		if trimmed != "" && !strings.HasPrefix(trimmed, "#") && !strings.HasPrefix(trimmed, "---") && !strings.HasPrefix(trimmed, "%") {
			first = trimmed
			break
		}
	}
	switch {
	case first == "":
		return nil, nil
	case strings.HasPrefix(first, policy.Annotation):
		all := string(text[bytes.Index(text, []byte(first)):])
		return []Document{{Value: map[string]any{"retries": all}, Position: func(string) string { return name }}}, nil
	case first[0] != '{' && first[0] != '[' && !looksLikeFields.MatchString(first):
		return readEnglish(name, string(text))
	}
	docs, err := readDocuments(name, formatOf(name), text, fixedRoot(policyRoot))
	for i := range docs {
		if docs[i].Err != nil {
			return nil, fmt.Errorf("%s: %w", docs[i].Position(""), docs[i].Err)
		}
		docs[i].dropRoot()
		fields, _ := docs[i].Value.(map[string]any)
		if text, is := fields["expr"].(string); is && len(fields) == 1 { // a policy in English
			value, lines, err := english.Parse(text)
			if err != nil {
				return nil, docs[i].At(document.Place(err, "expr"))
			}
			docs[i].Value, docs[i].English, docs[i].SaysMail = value, true, lines.SaysMail()
		}
	}
	return docs, err
}

// dropRoot names the fields of a policy as in the policy alone.
func (d *Document) dropRoot() {
	position := d.Position
	d.Position = func(field string) string { return position(fieldBelow(policyRoot, field)) }
}

func readEnglish(name, text string) ([]Document, error) {
	value, lines, err := english.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	position := func(field string) string {
		if line := lines.Line(field); line > 0 {
			return fmt.Sprintf("%s line %d", name, line)
		}
		return name
	}
	return []Document{{Value: value, English: true, SaysMail: lines.SaysMail(), Position: position}}, nil
}
