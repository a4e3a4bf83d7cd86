package architecture

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// sources are the numbered rules of the documents that refreshd was built after, and of its own, and how many each has.
var sources = map[string]int{"fair %d": 16, "S0-%d": 53, "bug %d": 38, "001/%d": 26, "002/%d": 9, "003/%d": 12, "004/%d": 16, "decision %d": 14}

func TestEachRuleOfTheSourcesNamesATestThatAlwaysRuns(t *testing.T) {
	report(t, untested(document(t, "rules.md"), sources, testsOf(repository(t))))
	requireProofs(t)
}

func TestEachPromiseNamesATestThatHoldsIt(t *testing.T) {
	report(t, untested(document(t, "guarantees.md"), map[string]int{"G%d": 29}, testsOf(repository(t))))
	requireProofs(t)
}

// requireProofs skips a test about a page of proofs where the proofs themselves are skipped: there the names are right, and nothing is
// proven. With CI set it fails.
func requireProofs(t *testing.T) {
	t.Helper()
	t.Log("most of the tests that are named there need redis-server and are skipped without it; what is skipped proves nothing")
	testkit.RequireProgram(t, "redis-server", "redis-server")
}

// testsOf finds the tests of all packages by names such as "model.TestX"; a package is called by its directory.
func testsOf(files []file) map[string]*ast.FuncDecl {
	tests := map[string]*ast.FuncDecl{}
	for _, f := range files {
		for _, test := range f.functions() {
			if f.isTest() && test.Recv == nil && test.Name.Name != "TestMain" && strings.HasPrefix(test.Name.Name, "Test") {
				tests[path.Base(path.Dir(f.path))+"."+test.Name.Name] = test
			}
		}
	}
	return tests
}

// row is a line of the tables: | rule | in short | its tests |.
var row = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]*) \| ([^|]*) \|$`)

// untested returns one line for each rule that the document has not once, with words and tests.
func untested(document string, sources map[string]int, tests map[string]*ast.FuncDecl) (places []string) {
	seen := map[string]int{}
	for _, cells := range row.FindAllStringSubmatch(document, -1) {
		rule, words, named := cells[1], cells[2], cells[3]
		if rule == "rule" || strings.HasPrefix(rule, "--") {
			continue
		}
		seen[rule]++
		if strings.TrimSpace(words) == "" {
			places = append(places, rule+": expected the rule in a few words, found none")
		}
		places = append(places, missingTests(rule, named, tests)...)
	}
	var rules []string
	for _, form := range slices.Sorted(maps.Keys(sources)) {
		for i := range sources[form] {
			rules = append(rules, fmt.Sprintf(form, i+1))
		}
	}
	for _, rule := range rules {
		if seen[rule] != 1 {
			places = append(places, fmt.Sprintf("%s: expected one row, found %d", rule, seen[rule]))
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(seen)) {
		if !slices.Contains(rules, rule) {
			places = append(places, rule+": expected a number of the sources, found another")
		}
	}
	return places
}

// notOurs stands for a rule without a test: its reason.
var notOurs = regexp.MustCompile(`^not ours: .*\w`)

// missingTests returns one line for each name that is not that of a test which always runs.
func missingTests(rule, named string, tests map[string]*ast.FuncDecl) (places []string) {
	if notOurs.MatchString(named) {
		return nil
	}
	for part := range strings.SplitSeq(named, ", ") {
		test := tests[strings.Trim(part, "`")]
		switch {
		case !strings.HasPrefix(part, "`") || !strings.HasSuffix(part, "`"):
			places = append(places, fmt.Sprintf("%s: expected `package.TestName` or not ours: reason, found %q", rule, part))
		case test == nil:
			places = append(places, fmt.Sprintf("%s: expected a test, found none of the name %s", rule, part))
		case isSkipped(test):
			places = append(places, fmt.Sprintf("%s: expected a test that always runs, found %s, which skips itself", rule, part))
		}
	}
	return places
}

// isSkipped reports whether a test skips itself as a whole, always or unless the long tests are to run. What skips a part of it is
// further down.
func isSkipped(test *ast.FuncDecl) bool {
	return slices.ContainsFunc(test.Body.List, func(statement ast.Stmt) bool {
		condition, conditional := statement.(*ast.IfStmt)
		if conditional {
			return calls(condition.Cond, "long", "Enabled") && slices.ContainsFunc(condition.Body.List, skips)
		}
		return skips(statement)
	})
}

func skips(statement ast.Stmt) bool {
	expression, ok := statement.(*ast.ExprStmt)
	return ok && (calls(expression.X, "t", "Skip") || calls(expression.X, "t", "Skipf") || calls(expression.X, "t", "SkipNow") ||
		calls(expression.X, "long", "Only"))
}

// calls reports whether an expression is the call of a function of a package or value, perhaps negated or joined with another.
func calls(expression ast.Expr, of, function string) bool {
	switch e := expression.(type) {
	case *ast.CallExpr:
		selector, ok := e.Fun.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != function {
			return false
		}
		name, ok := selector.X.(*ast.Ident)
		return ok && name.Name == of
	case *ast.BinaryExpr:
		return calls(e.X, of, function) || calls(e.Y, of, function)
	case *ast.UnaryExpr:
		return calls(e.X, of, function)
	}
	return false
}

func TestEachFaultHasItsNumbersInTheDocument(t *testing.T) {
	report(t, unnumbered(document(t, "faults.md"), testsOf(repository(t))))
	requireProofs(t)
}

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

func concludes(test *ast.FuncDecl) (found bool) {
	ast.Inspect(test.Body, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		found = found || ok && (selector.Sel.Name == "conclude" || selector.Sel.Name == "audit")
		return !found
	})
	return found
}
