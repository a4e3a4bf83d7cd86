// Package architecture holds the rules of this repository that no linter knows, as tests. The import and clock rules are
// in .golangci.yaml.
package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
)

type file struct {
	path   string
	text   string
	syntax *ast.File // nil unless it is Go
}

var (
	positions      = token.NewFileSet()
	readRepository sync.Once
	repositoryRead []file
)

// repository returns the sources of this repository, which are read once for all tests.
func repository(t *testing.T) []file {
	t.Helper()
	readRepository.Do(func() { repositoryRead = readTree(t, os.DirFS("../..")) })
	return repositoryRead
}

func readTree(t *testing.T, tree fs.FS) (files []file) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		ext := path.Ext(name)
		if err != nil || entry.IsDir() || ext != ".go" && ext != ".lua" {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		f := file{path: name, text: string(text)}
		if err == nil && ext == ".go" {
			f.syntax, err = parser.ParseFile(positions, name, text, parser.SkipObjectResolution)
		}
		files = append(files, f)
		return err
	})
	must(t, err)
	return files
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	must(t, err)
	return string(text)
}

// report fails a test for each place that breaks a rule.
func report(t *testing.T, places []string) {
	t.Helper()
	for _, place := range places {
		t.Error(place)
	}
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f file) isLua() bool { return path.Ext(f.path) == ".lua" }

func (f file) inspect(visit func(ast.Node)) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		visit(n)
		return true
	})
}

func (f file) functions() (all []*ast.FuncDecl) {
	if f.syntax == nil {
		return nil
	}
	for _, declaration := range f.syntax.Decls {
		if function, is := declaration.(*ast.FuncDecl); is {
			all = append(all, function)
		}
	}
	return all
}
