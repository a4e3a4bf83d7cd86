package architecture

import (
	"go/ast"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const faultNumbers = "../../docs/faults.md"

func TestEachFaultHasItsNumbersInTheDocument(t *testing.T) {
	document, err := os.ReadFile(faultNumbers)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range unnumbered(string(document), testsOf(repository(t))) {
		t.Error(place)
	}
	requireProofs(t)
}

// quoted is the name of a test in a document.
var quoted = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")

// unnumbered returns one line for each test of package faults that ends in numbers and is not in the document, and for each name in
// the document that is no test of it.
func unnumbered(document string, tests map[string]*ast.FuncDecl) (places []string) {
	named := map[string]bool{}
	for _, match := range quoted.FindAllStringSubmatch(document, -1) {
		named[match[1]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		short, ours := strings.CutPrefix(name, "faults.")
		if ours && concludes(tests[name]) && !named[short] {
			places = append(places, "docs/faults.md: expected the numbers of "+short+", found none")
		}
	}
	for _, short := range slices.Sorted(maps.Keys(named)) {
		if tests["faults."+short] == nil {
			places = append(places, "docs/faults.md: expected a test of package faults, found "+short)
		}
	}
	return places
}

// concludes reports whether a test logs the numbers of a drill.
func concludes(test *ast.FuncDecl) (found bool) {
	ast.Inspect(test.Body, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		found = found || ok && selector.Sel.Name == "conclude"
		return !found
	})
	return found
}
