package definitions

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Directory is what a directory of documents holds.
type Directory struct {
	Policies []Policy // each name once
	Models   []Model  // each uid once
	Refused  []Document
}

// Policy is a policy as somebody wrote it, under the name under which it is to be stored.
type Policy struct {
	Document
	Name  string
	Draft policy.Draft
}

// WholePolicies are the policies of the directory, completed with the one called `default` among them, or else with the usual one. That is also the one
// of a model that names none.
func (d *Directory) WholePolicies(usual policy.Policy) (model.Policies, error) {
	sources := make([]Source, len(d.Policies))
	for i, p := range d.Policies {
		sources[i] = Source{Document: p.Document, Draft: p.Draft}
	}
	policies := model.Policies{ByName: map[string]policy.Policy{policy.DefaultName: usual}}
	if err := Complete(sources, func() (policy.Policy, error) { return usual, nil }); err != nil {
		return policies, err
	}
	for _, source := range sources {
		policies.ByName[source.Policy.Name] = source.Policy
		policies.Stored = append(policies.Stored, source.Policy.Name)
	}
	policies.ByName[""] = policies.ByName[policy.DefaultName]
	return policies, nil
}

// suffixes are those of the files that a directory is read from.
var suffixes = append([]string{".yaml", ".yml", ".json"}, lineSuffixes...)

// ReadDirectory reads a file, or all files of a directory and of those below it whose names end in .yaml, .yml, .json, .jsonl or .ndjson; a name
// that begins with a dot is passed over. A document with a uid is a model, any other one a policy; `kind` may say which. What is no such
// document, or names a model or policy that another one has, is refused. An error is one of the files.
func ReadDirectory(root string) (Directory, error) {
	var d Directory
	places := make(map[string]string) // of what was read already
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		root = filepath.Clean(root) + string(filepath.Separator) // otherwise a link to a directory would be a file
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch hidden := path != root && strings.HasPrefix(entry.Name(), "."); {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || path != root && !slices.Contains(suffixes, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		docs, err := readMixed(path, text)
		for _, doc := range docs {
			d.add(doc, places)
		}
		return err
	})
	return d, err
}

// add takes a document in, or refuses it. places are those of what was taken in before.
func (d *Directory) add(doc Document, places map[string]string) {
	name, take, err := d.read(doc)
	if before := places[name]; err == nil && before != "" {
		err = document.Refuse("", "each model and each policy once", name+" again, as at "+before)
	}
	if err != nil {
		doc.Err = err
		d.Refused = append(d.Refused, doc)
		return
	}
	places[name] = doc.Position("")
	take()
}

const (
	kindModel  = "model"
	kindPolicy = "policy"
)

// read returns what the document is called, its kind first, and what takes it in.
func (d *Directory) read(doc Document) (name string, take func(), err error) {
	fields, is := doc.Value.(map[string]any)
	switch {
	case doc.Err != nil:
		return "", nil, doc.Err
	case !is:
		return "", nil, document.Refuse("", "a model or a policy", document.Found(doc.Value))
	}
	kind := kindPolicy
	if _, is := fields["uid"]; is {
		kind = kindModel
	}
	if told := fields["kind"]; told != nil && told != kind {
		return "", nil, document.Refuse("kind", kind+", as the other fields say", document.Found(told))
	}
	delete(fields, "kind")
	if kind == kindModel {
		m := parseModel(doc)
		m.Value = nil // a directory may hold very many
		return kind + " " + m.Definition.UID, func() { d.Models = append(d.Models, m) }, m.Err
	}
	p, err := parsePolicy(doc, fields)
	return kind + " " + p.Name, func() { d.Policies = append(d.Policies, p) }, err
}

// parsePolicy reads a policy that names itself, also as `refreshd model export` writes it: {"name": …, "policy": {…}}.
func parsePolicy(doc Document, fields map[string]any) (Policy, error) {
	p := Policy{Document: doc}
	if own, is := fields["policy"].(map[string]any); is && len(fields) == 2 && own["name"] == nil {
		own["name"] = fields["name"]
		p.Value = own
	}
	var err error
	if p.Draft, err = policy.Read(p.Value); err != nil {
		return p, err
	}
	p.Name = p.Draft.Name()
	return p, policy.ValidateName(p.Name)
}

// lineSuffixes are those of files of JSON lines.
var lineSuffixes = []string{".jsonl", ".ndjson"}

// readMixed reads the models and policies of a file.
func readMixed(path string, text []byte) (docs []Document, err error) {
	if slices.Contains(lineSuffixes, strings.ToLower(filepath.Ext(path))) {
		err = ReadLines(path, bytes.NewReader(text), func(doc Document) error { docs = append(docs, doc); return nil })
		return docs, err
	}
	docs, err = readYAML(path, text, rootOf) // YAML reads JSON too
	for i := range docs {
		if fields, is := docs[i].Value.(map[string]any); is && fields["uid"] == nil {
			docs[i].uproot()
		}
	}
	return docs, err
}

// rootOf goes by the fields of a document.
func rootOf(node *yaml.Node) string {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "uid" {
			return ""
		}
	}
	return policyRoot
}
