package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model/policy/english"
	"github.com/refreshd/refreshd/scripts"
)

// policySource is one policy as somebody wrote it: in a file, on standard input, or in Redis.
type policySource struct {
	value   any // decoded, as it was written
	policy  policy.Policy
	english bool // it was written in English
	stored  bool // it came from Redis
	// place says where a field stands.
	place func(field string) string
}

// maxPolicyText bounds a file of policies, in bytes.
const maxPolicyText = 4 << 20

// readPolicySources reads the policies of a file, of standard input (-), or the stored policy of that name where there is no
// such file. Each is known to be a policy; an error names the place of the first that is not.
func (a *app) readPolicySources(ctx context.Context, from string) ([]*policySource, error) {
	name, text, err := a.readPolicyText(from)
	if errors.Is(err, os.ErrNotExist) && policy.ValidateName(from) == nil {
		return a.readStoredPolicy(ctx, from)
	}
	if err != nil {
		return nil, err
	}
	sources, err := decodePolicies(name, text)
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%s: expected a policy, found nothing", name)
	}
	for _, source := range sources {
		if source.policy, err = policy.Parse(source.value); err != nil {
			return nil, source.at(err)
		}
	}
	return sources, nil
}

// readPolicySource is readPolicySources where exactly one is wanted.
func (a *app) readPolicySource(ctx context.Context, from string) (*policySource, error) {
	sources, err := a.readPolicySources(ctx, from)
	if err != nil {
		return nil, err
	}
	if len(sources) > 1 {
		return nil, fmt.Errorf("%s: expected one policy, found %d", from, len(sources))
	}
	return sources[0], nil
}

// at places an error of the model where its field was written.
func (s *policySource) at(err error) error {
	field := ""
	if refused := (*document.Error)(nil); errors.As(err, &refused) {
		field = refused.Field
	}
	return fmt.Errorf("%s: %w", s.place(field), err)
}

func (a *app) readPolicyText(from string) (name string, text []byte, err error) {
	name, in := "standard input", a.stdin
	if from != "-" {
		file, err := os.Open(from)
		if err != nil {
			return from, nil, err
		}
		defer file.Close() //nolint:errcheck // nothing was written to it
		name, in = from, file
	}
	buffered := bufio.NewReader(in)
	skipMark(buffered)
	text, err = io.ReadAll(io.LimitReader(buffered, maxPolicyText+1))
	if err != nil {
		return name, nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxPolicyText {
		return name, nil, fmt.Errorf("%s: expected at most %d MiB", name, maxPolicyText>>20)
	}
	return name, text, nil
}

func (a *app) readStoredPolicy(ctx context.Context, name string) (sources []*policySource, err error) {
	err = a.withStore(ctx, func(store *scripts.Store) error {
		text, found, err := store.PolicyText(ctx, name)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%s: expected a file or the name of a stored policy, found neither", name)
		}
		source := &policySource{stored: true, place: func(string) string { return "stored policy " + name }}
		if err := json.Unmarshal([]byte(text), &source.value); err != nil {
			return source.at(fmt.Errorf("expected JSON: %w", err))
		}
		if source.policy, err = policy.Parse(source.value); err != nil {
			return source.at(err)
		}
		source.policy.Name = name
		sources = []*policySource{source}
		return nil
	})
	return sources, err
}

// looksLikeFields matches the first line of a policy in YAML, or of a list of them: the name of a field, which has no spaces.
var looksLikeFields = regexp.MustCompile(`^(-[ \t]+)?["']?[A-Za-z_]+["']?[ \t]*:([ \t]|$)`)

// decodePolicies reads the text of one or more policies: JSON, YAML with many documents, or one in English.
func decodePolicies(name string, text []byte) ([]*policySource, error) {
	switch first := firstLine(text); {
	case first == "":
		return nil, nil
	case strings.HasPrefix(first, "{") || strings.HasPrefix(first, "[") || looksLikeFields.MatchString(first):
		return decodeYAMLPolicies(name, text) // YAML reads JSON too
	default:
		source, err := decodeEnglishPolicy(name, string(text))
		return []*policySource{source}, err
	}
}

// firstLine is the first line that says something.
func firstLine(text []byte) string {
	for line := range bytes.Lines(text) {
		trimmed := strings.TrimSpace(string(line))
		if trimmed != "" && !strings.HasPrefix(trimmed, "#") && !strings.HasPrefix(trimmed, "---") && !strings.HasPrefix(trimmed, "%") {
			return trimmed
		}
	}
	return ""
}

func decodeEnglishPolicy(name, text string) (*policySource, error) {
	value, lines, err := english.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	place := func(field string) string {
		if line := lines.Line(field); line > 0 {
			return fmt.Sprintf("%s line %d", name, line)
		}
		return name
	}
	return &policySource{value: value, english: true, place: place}, nil
}

func decodeYAMLPolicies(name string, text []byte) ([]*policySource, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	left := maxYAMLValues
	var sources []*policySource
	for {
		var root yaml.Node
		if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
			return sources, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		for _, node := range root.Content {
			for _, item := range listedYAML(node) {
				source, err := decodeYAMLPolicy(name, item, &left)
				if err != nil {
					return nil, err
				}
				sources = append(sources, source)
			}
		}
	}
}

// belowPolicy is the path that a policy would have in a model, where the reader of YAML knows which scalars it may decode.
const belowPolicy = "policy"

func decodeYAMLPolicy(name string, node *yaml.Node, left *int) (*policySource, error) {
	doc := &fileDocument{name: name, line: node.Line, lines: make(map[string]int)}
	scan := yamlScan{lines: doc.lines, left: *left}
	source := &policySource{place: func(field string) string { return doc.place(below(belowPolicy, "."+field)) }}
	var err error
	source.value, err = scan.value(node, belowPolicy, 0)
	*left = scan.left
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doc.place(""), err)
	}
	return source, nil
}
