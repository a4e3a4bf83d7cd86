package scripts

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// wall is what Go knows of the scripts.
type wall struct {
	codes   map[int]string    // the constants of type Code, without that word
	types   map[string]string // pattern of a key to its type, as the method of Keys documents it
	callers map[string]caller // by the name of the script
}

// caller is what the Go method of a script passes.
type caller struct {
	found bool
	keys  []string // patterns, in order
	args  int      // arguments before those of the items
}

func readWall(files map[string]string) (wall, error) {
	w := wall{map[int]string{}, map[string]string{}, map[string]caller{}}
	scripts := map[string]string{} // Go variable to file
	var functions []*ast.FuncDecl
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			return w, err
		}
		w.readConstants(file)
		w.readKeys(file)
		readEmbeds(text, scripts)
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				functions = append(functions, function)
			}
		}
	}
	for _, function := range functions {
		w.readCaller(function, scripts)
	}
	return w, nil
}

// readConstants finds "CodeApplied Code = 1".
func (w wall) readConstants(file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !isName(spec.Type, "Code") {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, _ := strconv.Atoi(literal.Value)
			w.codes[code] = strings.ToLower(strings.TrimPrefix(spec.Names[0].Name, "Code"))
		}
		return true
	})
}

func isName(node ast.Node, name string) bool {
	identifier, ok := node.(*ast.Ident)
	return ok && identifier.Name == name
}

var keyDocument = regexp.MustCompile(`^(\w+) is a (list|hash|zset|stream|string)\b`)

// readKeys finds "// Due is a zset: …" over a method of Keys.
func (w wall) readKeys(file *ast.File) {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv == nil || !isName(function.Recv.List[0].Type, "Keys") {
			continue
		}
		if found := keyDocument.FindStringSubmatch(function.Doc.Text()); found != nil && found[1] == function.Name.Name {
			w.types[keyPatterns[function.Name.Name]] = found[2]
		}
	}
}

// keyPatterns are all keys with names for what varies, by the name of their method.
var keyPatterns = allKeys(Keys{"<queue>"}, func(method string) string {
	if method == "Claimed" || method == "Taken" {
		return "<owner>"
	}
	return "<uid>"
})

var (
	embedPattern  = regexp.MustCompile(`(?m)^//go:embed (\S+)\nvar (\w+) string`)
	scriptPattern = regexp.MustCompile(`(\w+)\s+= redis\.NewScript\((\w+)\)`)
)

func readEmbeds(text string, scripts map[string]string) {
	embedded := map[string]string{}
	for _, found := range embedPattern.FindAllStringSubmatch(text, -1) {
		embedded[found[2]] = found[1]
	}
	for _, found := range scriptPattern.FindAllStringSubmatch(text, -1) {
		scripts[found[1]] = embedded[found[2]]
	}
}

// readCaller notes what a function passes to the script that it runs.
func (w wall) readCaller(function *ast.FuncDecl, scripts map[string]string) {
	passed := caller{found: true}
	script := ""
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			passed.assigned(node)
		case *ast.CallExpr:
			if name, args := scriptRun(node, scripts); name != "" {
				script = name
				passed.args += args
			}
		}
		return true
	})
	// A check-up runs a script for no item at all: the method that brings items knows all keys.
	if script != "" && len(passed.keys) >= len(w.callers[script].keys) {
		w.callers[script] = passed
	}
}

// assigned reads "keys := []string{…}", "keys = append(keys, …)" and "args := []any{…}".
func (c *caller) assigned(statement *ast.AssignStmt) {
	var values []ast.Expr
	switch value := statement.Rhs[0].(type) {
	case *ast.CompositeLit:
		values = value.Elts
	case *ast.CallExpr:
		if isName(value.Fun, "append") && isName(statement.Lhs[0], "keys") {
			values = value.Args[1:]
		}
	}
	switch {
	case isName(statement.Lhs[0], "keys"):
		for _, value := range values {
			c.keys = append(c.keys, patternOf(value))
		}
	case isName(statement.Lhs[0], "args"):
		c.args += len(values)
	}
}

// patternOf turns k.Claimed(owner) into "<queue>:claimed:<owner>".
func patternOf(expression ast.Expr) string {
	if call, ok := expression.(*ast.CallExpr); ok {
		if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
			return keyPatterns[selector.Sel.Name]
		}
	}
	return fmt.Sprintf("%T", expression)
}

// scriptRun recognizes script.Run(ctx, client, keys, …) and runCodes(ctx, client, script, keys, args), and counts the
// arguments that stand there.
func scriptRun(call *ast.CallExpr, scripts map[string]string) (script string, args int) {
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Run" && len(call.Args) >= 3 {
		if variable, ok := selector.X.(*ast.Ident); ok {
			args = len(call.Args) - 3
			if call.Ellipsis.IsValid() {
				args-- // "args...", counted where they are assigned
			}
			return scripts[variable.Name], args
		}
	}
	if at := slices.IndexFunc(call.Args, func(arg ast.Expr) bool { return isName(arg, "keys") }); isName(call.Fun, "runCodes") && at > 0 {
		if variable, ok := call.Args[at-1].(*ast.Ident); ok {
			return scripts[variable.Name], 0
		}
	}
	return "", 0
}
