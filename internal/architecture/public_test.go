package architecture

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestAllThatIsPublicCanBeUsedFromOutside(t *testing.T) {
	report(t, unusable(repository(t)))
}

// unusable returns one line for each exported declaration of a public package that needs a type of an internal one.
func unusable(files []file) (places []string) {
	for _, f := range files {
		if f.syntax == nil || f.isTest() || strings.Contains("/"+f.path, "/internal/") || f.syntax.Name.Name == "main" {
			continue
		}
		internal := internalImports(f)
		for _, declaration := range f.syntax.Decls {
			for name, part := range exportedParts(declaration) {
				ast.Inspect(part, func(n ast.Node) bool {
					if selector, ok := n.(*ast.SelectorExpr); ok && slices.Contains(internal, identifier(selector.X)) {
						places = append(places, f.path+": expected only public types in "+name+", found "+identifier(selector.X)+"."+selector.Sel.Name)
					}
					return true
				})
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// internalImports lists the names under which a file knows internal packages.
func internalImports(f file) (names []string) {
	for _, spec := range f.syntax.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if strings.Contains(imported, "/internal/") {
			name := path.Base(imported)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			names = append(names, name)
		}
	}
	return names
}

// exportedParts returns what a stranger sees of a declaration, by name: signatures, and types without their hidden fields.
func exportedParts(declaration ast.Decl) map[string]ast.Node {
	parts := map[string]ast.Node{}
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiverOf(d))) {
			parts[d.Name.Name] = d.Type
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				addType(parts, s)
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && s.Type != nil {
					parts[s.Names[0].Name] = s.Type
				}
			}
		}
	}
	return parts
}

func addType(parts map[string]ast.Node, spec *ast.TypeSpec) {
	if !spec.Name.IsExported() {
		return
	}
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		parts[spec.Name.Name] = spec.Type
		return
	}
	for _, field := range structure.Fields.List {
		if len(field.Names) == 0 {
			parts[spec.Name.Name+" (embedded)"] = field.Type
		} else if field.Names[0].IsExported() {
			parts[spec.Name.Name+" "+field.Names[0].Name] = field.Type
		}
	}
}

func identifier(expression ast.Expr) string {
	if name, ok := expression.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// receiverOf is the name of the type of which a function is a method.
func receiverOf(function *ast.FuncDecl) string {
	receiver := function.Recv.List[0].Type
	if pointer, is := receiver.(*ast.StarExpr); is {
		receiver = pointer.X
	}
	return identifier(receiver)
}
