package architecture

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A rule reads all sources and returns one line for each place that breaks it.
type rule func(files []file) []string

var rules = map[string]rule{
	"a line of a script fits the screen":              scriptsAreNarrow,
	"a key is written in internal/store/keys.go only": keysAreInOnePlace,
	"the domain starts no goroutine":                  domainStartsNoGoroutine,
	"a package is named after what it holds":          packagesHaveNouns,
}

func TestRepositoryKeepsItsRules(t *testing.T) {
	files := repository(t)
	for name, broken := range rules {
		t.Run(name, func(t *testing.T) {
			for _, place := range broken(files) {
				t.Error(place)
			}
		})
	}
}

// maxScriptColumns is the length of a line that can be read without turning it over.
const maxScriptColumns = 120

func scriptsAreNarrow(files []file) (places []string) {
	for _, f := range files {
		if !f.isLua() {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			if len(line) > maxScriptColumns {
				places = append(places, fmt.Sprintf("%s:%d: expected at most %d columns, found %d", f.path, i+1, maxScriptColumns, len(line)))
			}
		}
	}
	return places
}

const keysFile = "internal/store/keys.go"

// keysAreInOnePlace takes the parts of keys from the keys file, such as "-input" and ":model:", and looks for them in the
// literals of all other files. A literal with a space in it is a sentence, such as a help text, and no key. Examples are
// code of users, who have only the names.
func keysAreInOnePlace(files []file) (places []string) {
	parts := keyParts(files)
	for _, f := range files {
		if f.path == keysFile || f.isTest() || strings.HasPrefix(f.path, "examples/") {
			continue
		}
		for _, literal := range literals(f) {
			if part := partIn(literal, parts); part != "" {
				places = append(places, fmt.Sprintf("%s: expected keys to come from %s, found %q in %q", f.path, keysFile, part, literal))
			}
		}
	}
	return places
}

func keyParts(files []file) (parts []string) {
	for _, f := range files {
		if f.path != keysFile {
			continue
		}
		for _, literal := range literals(f) {
			if len(literal) > 1 && strings.ContainsAny(literal[:1], "-:") {
				parts = append(parts, literal)
			}
		}
	}
	return parts
}

func partIn(literal string, parts []string) string {
	if strings.ContainsAny(literal, " \n") {
		return ""
	}
	for _, part := range parts {
		if strings.HasSuffix(literal, part) || strings.HasSuffix(part, ":") && strings.Contains(literal, part) {
			return part
		}
	}
	return ""
}

// literals returns the string literals of a file.
func literals(f file) (texts []string) {
	if f.isLua() {
		return luaLiterals(f.text)
	}
	f.inspect(func(n ast.Node) {
		if literal, ok := n.(*ast.BasicLit); ok {
			// A literal that is no string does not unquote to anything that could be a key.
			text, _ := strconv.Unquote(literal.Value)
			texts = append(texts, text)
		}
	})
	return texts
}

// luaLiterals takes what stands between quotes outside comments. The scripts have no escapes and no long strings.
func luaLiterals(text string) (texts []string) {
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "--")
		for i, part := range strings.Split(strings.ReplaceAll(code, `"`, "'"), "'") {
			if i%2 == 1 {
				texts = append(texts, part)
			}
		}
	}
	return texts
}

func domainStartsNoGoroutine(files []file) (places []string) {
	for _, f := range files {
		if path.Dir(f.path) != "model" || f.isTest() {
			continue
		}
		f.inspect(func(n ast.Node) {
			if statement, ok := n.(*ast.GoStmt); ok {
				places = append(places, positions.Position(statement.Pos()).String()+": the model package decides and never acts")
			}
		})
	}
	return places
}

var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"}

func packagesHaveNouns(files []file) (places []string) {
	for _, f := range files {
		if f.syntax != nil && slices.Contains(emptyNames, f.syntax.Name.Name) {
			places = append(places, fmt.Sprintf("%s: expected the name of a thing, found package %s", f.path, f.syntax.Name.Name))
		}
	}
	return places
}
