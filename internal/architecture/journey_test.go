package architecture

import (
	"go/ast"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

const house = "../../docs/architecture.md"

func TestThePageOfTheHouseNamesWhatExists(t *testing.T) {
	document, err := os.ReadFile(house)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range astray(string(document), repository(t), os.DirFS("../..")) {
		t.Error(place)
	}
}

// The names of functions, scripts and rooms in a document.
var (
	functionName = regexp.MustCompile("`([a-z]+(?:\\.[A-Za-z]+){1,2})`")
	roomRow      = regexp.MustCompile("(?m)^\\| (`[a-z/]+`(?:, `[a-z/]+`)*) \\|")
	heading      = regexp.MustCompile(`(?m)^###? .*$`)
)

// astray returns one line for each name in the document that the sources do not have.
func astray(document string, files []file, tree fs.FS) (places []string) {
	names := namesOf(files)
	for _, match := range functionName.FindAllStringSubmatch(document, -1) {
		name := match[1]
		script, isScript := strings.CutSuffix(name, ".lua")
		switch {
		case strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "time."):
		case isScript:
			if _, err := fs.Stat(tree, "scripts/"+script+".lua"); err != nil {
				places = append(places, "expected a script, found "+name)
			}
		case !names[name]:
			places = append(places, "expected a name of the repository, found "+name)
		}
	}
	for _, row := range roomRow.FindAllStringSubmatch(document, -1) {
		for room := range strings.SplitSeq(row[1], ", ") {
			if info, err := fs.Stat(tree, strings.Trim(room, "`")); err != nil || !info.IsDir() {
				places = append(places, "expected a room, found "+room)
			}
		}
	}
	return places
}

// namesOf names all functions, methods, types, fields and values outside of tests, as "package.Function" and "package.Type.Method".
func namesOf(files []file) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		if f.syntax == nil || f.isTest() {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				names[f.syntax.Name.Name+"."+nameOf(d)] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					nameSpec(names, f.syntax.Name.Name+".", spec)
				}
			}
		}
	}
	return names
}

// nameSpec names a type with its fields, or constants and variables: a document may speak of them.
func nameSpec(names map[string]bool, prefix string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[prefix+name.Name] = true
		}
	case *ast.TypeSpec:
		names[prefix+s.Name.Name] = true
		if structure, ok := s.Type.(*ast.StructType); ok {
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					names[prefix+s.Name.Name+"."+name.Name] = true
				}
			}
		}
	}
}

// nameOf is "Function" or "Type.Method".
func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	of := function.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return identifier(of) + "." + function.Name.Name
}

// section is what stands below a heading, up to the next one.
func section(document, title string) string {
	_, below, _ := strings.Cut(document, "# "+title+"\n")
	if next := heading.FindStringIndex(below); next != nil {
		below = below[:next[0]]
	}
	return below
}
