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

// file is one source of the repository.
type file struct {
	path   string
	text   string
	syntax *ast.File // nil unless it is Go
}

var positions = token.NewFileSet()

var (
	readRepository sync.Once
	repositoryRead []file
)

// repository returns the sources of this repository, which are read once for all tests.
func repository(t *testing.T) []file {
	t.Helper()
	readRepository.Do(func() { repositoryRead = readTree(t, os.DirFS("../..")) })
	return repositoryRead
}

// readTree reads the Go and Lua sources below tree.
func readTree(t *testing.T, tree fs.FS) []file {
	t.Helper()
	var files []file
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !isSource(entry) {
			return err
		}
		f, err := readSource(tree, name)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func isSource(entry fs.DirEntry) bool {
	ext := path.Ext(entry.Name())
	return !entry.IsDir() && (ext == ".go" || ext == ".lua")
}

func readSource(tree fs.FS, name string) (file, error) {
	text, err := fs.ReadFile(tree, name)
	if err != nil || path.Ext(name) != ".go" {
		return file{path: name, text: string(text)}, err
	}
	syntax, err := parser.ParseFile(positions, name, text, parser.SkipObjectResolution)
	return file{path: name, text: string(text), syntax: syntax}, err
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f file) isLua() bool { return path.Ext(f.path) == ".lua" }

// inspect calls visit for each node of a Go file.
func (f file) inspect(visit func(ast.Node)) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		visit(n)
		return true
	})
}
