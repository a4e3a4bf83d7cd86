package definitions

import (
	"bytes"
	"fmt"
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

// Directory is the content of a directory of documents.
type Directory struct {
	Policies []Source // each name once, not completed yet
	Models   []Model  // each uid once
	Refused  []Document
}

// WholePolicies are the policies of the directory, completed with the one called `default` among them, or else with the usual one. That is also the one
// of a model that names none.
func (d *Directory) WholePolicies(usual policy.Policy) (model.Policies, error) {
	sources := slices.Clone(d.Policies)
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

// ReadDirectory reads a file, or all files of a directory tree whose names end in .yaml, .yml, .json, .jsonl or .ndjson, without those that begin
// with a dot. A document with a uid is a model, any other one a policy; `kind` may say which. It refuses other documents, and a second model or
// policy of the same name. Files must be regular, at most 64 MiB, and no link may lead out of the directory.
func ReadDirectory(path string) (d Directory, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return d, err
	}
	places := make(map[string]string)
	if !info.IsDir() {
		err = d.readFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), path, places)
		return d, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return d, err
	}
	defer func() { _ = root.Close() }() // only read
	err = d.readTree(root.FS(), path, places)
	return d, err
}

func (d *Directory) readTree(tree fs.FS, path string, places map[string]string) error {
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read %s: %w", filepath.Join(path, name), err)
		}
		switch hidden := name != "." && strings.HasPrefix(entry.Name(), "."); {
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || formatOf(name) == "":
			return nil
		}
		return d.readFile(tree, name, filepath.Join(path, name), places)
	})
}

func (d *Directory) readFile(tree fs.FS, name, path string, places map[string]string) error {
	info, err := fs.Stat(tree, name)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := CheckFile(path, info); err != nil {
		return err
	}
	in, err := tree.Open(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = in.Close() }() // only read
	text, err := readAll(path, in, maxFile)
	if err != nil {
		return err
	}
	take := func(doc Document) error { d.add(doc, places); return nil }
	if formatOf(path) == formatLines {
		return ReadLines(path, bytes.NewReader(text), take)
	}
	docs, err := readDocuments(path, formatOf(path), text, func(node *yaml.Node) string {
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == "uid" {
				return ""
			}
		}
		return policyRoot
	})
	for _, doc := range docs {
		if fields, is := doc.Value.(map[string]any); is && fields["uid"] == nil {
			doc.dropRoot()
		}
		d.add(doc, places)
	}
	return err
}

// CheckFile refuses a file that is not regular before it is opened: a pipe would wait for a writer, and a device may have no end.
func CheckFile(path string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return fmt.Errorf("%s: expected a regular file, found a directory", path)
	}
	return fmt.Errorf("%s: expected a regular file, found a pipe or a device", path)
}

// add adds a document, or refuses it. places holds the position of each name.
func (d *Directory) add(doc Document, places map[string]string) {
	name, take, err := d.take(doc)
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

// take returns the name of a document, its kind first, and a function that adds it.
func (d *Directory) take(doc Document) (name string, take func(), err error) {
	if err := checkFields(doc, "a model, which has a uid, or a policy"); err != nil {
		return "", nil, err
	}
	fields := doc.Value.(map[string]any) // a definition is an object
	kind := kindPolicy
	if _, is := fields["uid"]; is {
		kind = kindModel
	}
	if named := fields["kind"]; named != nil && named != kind {
		return "", nil, document.Refuse("kind", kind+", as the other fields say", document.Found(named))
	}
	delete(fields, "kind")
	if kind == kindModel {
		m := parseModel(doc)
		m.Value = nil // a directory may hold very many
		return kind + " " + m.Definition.UID, func() { d.Models = append(d.Models, m) }, m.Err
	}
	p := Source{Document: doc}
	if own, is := fields["policy"].(map[string]any); is && len(fields) == 2 && own["name"] == nil { // as `refreshd model export` writes it
		own["name"] = fields["name"]
		p.Value = own
	}
	if p.Draft, err = policy.Read(p.Value); err == nil {
		err = policy.ValidateName(p.Draft.Name())
	}
	return kind + " " + p.Draft.Name(), func() { d.Policies = append(d.Policies, p) }, err
}
