package architecture

import (
	"cmp"
	"fmt"
	"go/ast"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRepositoryKeepsItsRules(t *testing.T) {
	for name, broken := range map[string]func([]file) []string{ // each returns one line for each place that breaks it
		"a line of a script fits the screen":              scriptsAreNarrow,
		"a key is written in internal/store/keys.go only": keysAreInOnePlace,
		"the domain starts no goroutine":                  domainStartsNoGoroutine,
		"a package is named after what it holds":          packagesHaveNouns,
		"a user interface speaks its own language":        interfacesSpeakTheirLanguage,
	} {
		t.Run(name, func(t *testing.T) { report(t, broken(repository(t))) })
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
	var parts []string
	for _, f := range files {
		for _, literal := range literals(f) {
			if part := cmp.Or(reflect.StructTag(literal).Get("key"), literal); f.path == keysFile && len(part) > 1 && strings.ContainsAny(part[:1], "-:") {
				parts = append(parts, part)
			}
		}
	}
	for _, f := range files {
		if f.path == keysFile || f.isTest() || strings.HasPrefix(f.path, "examples/") {
			continue
		}
		for _, literal := range literals(f) {
			at := slices.IndexFunc(parts, func(part string) bool {
				return strings.HasSuffix(literal, part) || strings.HasSuffix(part, ":") && strings.Contains(literal, part)
			})
			if at >= 0 && !strings.ContainsAny(literal, " \n") {
				places = append(places, fmt.Sprintf("%s: expected keys to come from %s, found %q in %q", f.path, keysFile, parts[at], literal))
			}
		}
	}
	return places
}

// literals returns the string literals of a file. The scripts have no escapes and no long strings.
func literals(f file) (texts []string) {
	if f.isLua() {
		for line := range strings.Lines(f.text) {
			code, _, _ := strings.Cut(line, "--")
			for i, part := range strings.Split(strings.ReplaceAll(code, `"`, "'"), "'") {
				if i%2 == 1 {
					texts = append(texts, part)
				}
			}
		}
		return texts
	}
	f.inspect(func(n ast.Node) {
		if literal, ok := n.(*ast.BasicLit); ok { // one that is no string does not unquote to anything that could be a key
			texts = append(texts, unquote(literal))
		}
	})
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

var ofCommandLine = regexp.MustCompile(`--[a-z]|refreshd [a-z]+ `)

// interfacesSpeakTheirLanguage finds flags and commands in what several user interfaces show, or one that is not the command line. The package hint has the words
// of each.
func interfacesSpeakTheirLanguage(files []file) (places []string) {
	shown := []string{"internal/operate", "internal/ui/dashboard", "poller", "client", "model"}
	for _, f := range files {
		if !slices.Contains(shown, path.Dir(f.path)) || f.isTest() {
			continue
		}
		for _, literal := range literals(f) {
			if found := ofCommandLine.FindString(literal); found != "" {
				places = append(places, fmt.Sprintf("%s: expected no word of the command line, found %q in %q", f.path, found, literal))
			}
		}
	}
	return places
}
