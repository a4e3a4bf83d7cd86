package architecture

import (
	"go/ast"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestThePageOfTheHouseNamesWhatExists(t *testing.T) {
	report(t, astray(document(t, "architecture.md"), repository(t), os.DirFS("../..")))
	report(t, astray(document(t, "../CONTRIBUTING.md"), repository(t), os.DirFS("../..")))
}

// These find names of functions, packages and files in a document.
var (
	functionName = regexp.MustCompile("`([a-z]+(?:\\.[A-Za-z]+){1,2})`")
	roomRow      = regexp.MustCompile("(?m)^\\| (`[a-z/]+`(?:, `[a-z/]+`)*) \\|")
	filePath     = regexp.MustCompile("`([a-z_]+/[a-z_/]+\\.(?:go|lua|md|sh))`")
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
	for _, match := range filePath.FindAllStringSubmatch(document, -1) {
		if _, err := fs.Stat(tree, match[1]); err != nil {
			places = append(places, "expected a file, found "+match[1])
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
		prefix := f.syntax.Name.Name + "."
		for _, function := range f.functions() {
			names[prefix+nameOf(function)] = true
		}
		f.inspect(func(n ast.Node) {
			switch s := n.(type) {
			case *ast.ValueSpec: // a document may speak of constants and variables
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
		})
	}
	return names
}

func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	return receiverOf(function) + "." + function.Name.Name
}
