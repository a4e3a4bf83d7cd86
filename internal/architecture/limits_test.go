package architecture

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/refreshd/refreshd/"

// limits say how large each kind of thing may get before a reader loses sight of it.
var limits = map[string]int{
	"Go files without tests in %s":          40,
	"Go files without tests in the room %s": 30,
	"exported methods of %s":                40,
	"exported methods of %s, of a room":     30,
	"lines of the include %s":               100,
	"lines of the script %s":                150,
	"lines of %s":                           400,
	"rows of %s":                            200,
}

// tooLarge are the things that are above their limit, and how large they are allowed to be until they are split. A row goes as soon as its thing
// is within the limit; none is added.
var tooLarge = map[string]int{}

func TestNothingGrowsTooLargeToBeRead(t *testing.T) {
	sizes := sizesOf(repository(t))
	sizes["rows of %s"] = map[string]int{"docs/glossary.md": len(row.FindAllString(document(t, "glossary.md"), -1)) - 1} // without the head
	report(t, outgrown(sizes, tooLarge))
}

// sizesOf measures what limits has a row for: kind -> thing -> size.
func sizesOf(files []file) map[string]map[string]int {
	sizes := map[string]map[string]int{}
	for kind := range limits {
		sizes[kind] = map[string]int{}
	}
	for _, f := range files {
		folder, lines := path.Dir(f.path), strings.Count(f.text, "\n")
		switch {
		case f.isLua() && path.Base(folder) == "include":
			sizes["lines of the include %s"][f.path] = lines
		case f.isLua():
			sizes["lines of the script %s"][f.path] = lines
		default:
			sizes["lines of %s"][f.path] = lines
		}
		if f.isLua() || f.isTest() {
			continue
		}
		if isRoom(folder) {
			sizes["Go files without tests in the room %s"][folder]++
		} else {
			sizes["Go files without tests in %s"][folder]++
		}
	}
	all := typesOf(files)
	for name := range all {
		switch folder := name[:strings.LastIndex(name, ".")]; {
		case strings.HasPrefix(folder, "internal/testkit"): // a test replaces what it likes of a whole part
		case isRoom(folder):
			sizes["exported methods of %s, of a room"][name] = len(all.methods(name))
		default:
			sizes["exported methods of %s"][name] = len(all.methods(name))
		}
	}
	return sizes
}

// isRoom reports whether a folder is one of those between Redis and the rest of the product.
func isRoom(folder string) bool {
	return slices.ContainsFunc([]string{"internal/store", "internal/flow", "internal/report", "internal/outbox"}, func(room string) bool {
		return folder == room || strings.HasPrefix(folder, room+"/")
	})
}

// typeTable has the types of the product, by folder and name.
type typeTable map[string]*declared

type declared struct {
	own      []string // exported methods
	embedded []string // types that it embeds, by folder and name: their methods are its own
}

// typesOf reads which types there are.
func typesOf(files []file) typeTable {
	all := typeTable{}
	at := func(name string) *declared {
		if all[name] == nil {
			all[name] = &declared{}
		}
		return all[name]
	}
	for _, f := range files {
		if f.syntax == nil || f.isTest() {
			continue
		}
		folder, imported := path.Dir(f.path), map[string]string{}
		for _, spec := range f.syntax.Imports {
			if name, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); is {
				imported[path.Base(name)] = name
			}
		}
		for _, method := range f.functions() {
			if method.Recv != nil && method.Name.IsExported() {
				one := at(folder + "." + receiverOf(method))
				one.own = append(one.own, method.Name.Name)
			}
		}
		f.inspect(func(n ast.Node) {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return
			}
			one := at(folder + "." + spec.Name.Name)
			switch t := spec.Type.(type) {
			case *ast.StructType:
				for _, field := range t.Fields.List {
					if len(field.Names) == 0 {
						one.embedded = append(one.embedded, typeNamed(field.Type, folder, imported))
					}
				}
			case *ast.InterfaceType:
				for _, method := range t.Methods.List {
					if len(method.Names) == 0 {
						one.embedded = append(one.embedded, typeNamed(method.Type, folder, imported))
					} else if method.Names[0].IsExported() {
						one.own = append(one.own, method.Names[0].Name)
					}
				}
			}
		})
	}
	return all
}

// typeNamed is the type that an expression names, by folder and name; empty: none of ours.
func typeNamed(expression ast.Expr, folder string, imported map[string]string) string {
	if pointer, is := expression.(*ast.StarExpr); is {
		expression = pointer.X
	}
	if selector, is := expression.(*ast.SelectorExpr); is {
		folder, expression = imported[identifier(selector.X)], selector.Sel
	}
	return folder + "." + identifier(expression)
}

// methods are the exported methods of a type, also those of what it embeds, but for the domain: whoever has read a model tells what it is.
func (t typeTable) methods(name string) map[string]bool {
	all := map[string]bool{}
	if one := t[name]; one != nil {
		for _, method := range one.own {
			all[method] = true
		}
		for _, embedded := range one.embedded {
			if path.Dir(embedded) != "." || !strings.HasPrefix(embedded, "model.") {
				maps.Copy(all, t.methods(embedded))
			}
		}
	}
	return all
}

// TestAMethodOfWhatATypeEmbedsCountsAsItsOwn also through a package and a chain.
func TestAMethodOfWhatATypeEmbedsCountsAsItsOwn(t *testing.T) {
	files := readTree(t, fstest.MapFS{
		"a/a.go": {Data: []byte("package a\n\ntype Store struct{}\n\nfunc (s *Store) Get() {}\nfunc (Store) Put() {}\nfunc (Store) hidden() {}\n\ntype Reads interface{ Get() }\n")},
		"b/b.go": {Data: []byte("package b\n\nimport \"" + module + "a\"\n\ntype Pool struct{ *a.Store }\n\nfunc (Pool) Get() {}\nfunc (Pool) Take() {}\n\ntype Deep struct {\n\tPool\n\ta.Reads\n}\n")},
	})
	all := typesOf(files)
	for name, want := range map[string]int{"a.Store": 2, "a.Reads": 1, "b.Pool": 3, "b.Deep": 3} {
		if got := len(all.methods(name)); got != want {
			t.Errorf("%s has %d methods, want %d", name, got, want)
		}
	}
}

// outgrown returns one line for each thing above its limit or its allowance, and for each allowance that is not needed any more.
func outgrown(sizes map[string]map[string]int, allowed map[string]int) (places []string) {
	needed := map[string]bool{}
	for kind, limit := range limits {
		for thing, size := range sizes[kind] {
			name := fmt.Sprintf(kind, thing)
			needed[name] = size > limit
			if size > max(limit, allowed[name]) {
				places = append(places, fmt.Sprintf("%s: expected at most %d, found %d", name, max(limit, allowed[name]), size))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if !needed[name] {
			places = append(places, name+" is within its limit: remove its row of tooLarge")
		}
	}
	slices.Sort(places)
	return places
}
