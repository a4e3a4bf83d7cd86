package architecture

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

const glossary = "../../docs/glossary.md"

func TestEachWordStandsInTheGlossaryOnce(t *testing.T) {
	document, err := os.ReadFile(glossary)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range unexplained(string(document), readTree(t, os.DirFS("../.."))) {
		t.Error(place)
	}
}

// qualified is a name of Go code in a document, such as `model.State`.
var qualified = regexp.MustCompile("`([a-z]+(?:\\.[A-Z][A-Za-z]*){1,2})`")

// sourceName is a file in a document, such as `model/why.go` or `commit.lua`.
var sourceName = regexp.MustCompile("`([a-z/_-]+\\.(?:go|lua))`")

// unexplained returns one line for each word that the glossary lacks, has twice or out of order, and for each name in it that does not exist.
func unexplained(document string, files []file) (places []string) {
	seen, last := map[string]bool{}, ""
	for _, cells := range row.FindAllStringSubmatch(document, -1) {
		word, meaning := strings.Trim(cells[1], "`"), cells[2]
		if word == "word" || strings.HasPrefix(word, "--") {
			continue
		}
		order := strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(word))
		switch {
		case seen[order]:
			places = append(places, word+": expected one row, found another")
		case order < last:
			places = append(places, fmt.Sprintf("%s: expected the alphabet, found it behind %s", word, last))
		case strings.TrimSpace(meaning) == "":
			places = append(places, word+": expected a meaning, found none")
		}
		seen[word], seen[order], last = true, true, order
	}
	names := namesOf(files)
	for _, match := range qualified.FindAllStringSubmatch(document, -1) {
		if !names[match[1]] {
			places = append(places, "expected a name of the repository, found "+match[1])
		}
	}
	for _, match := range sourceName.FindAllStringSubmatch(document, -1) {
		if !slices.ContainsFunc(files, func(f file) bool { return f.path == match[1] || f.path == "scripts/"+match[1] }) {
			places = append(places, "expected a source of the repository, found "+match[1])
		}
	}
	wanted := wordsOf(files)
	for _, word := range slices.Sorted(maps.Keys(wanted)) {
		if !seen[word] {
			places = append(places, fmt.Sprintf("%s: expected a row, as %s has the word", word, wanted[word]))
		}
	}
	return places
}

// wordsOf returns the words that people meet in Redis and in the log, with a file that has them: parts of keys, fields of the hash, of
// the history and of policies, events, counters, and fields of log lines.
func wordsOf(files []file) map[string]string {
	words := map[string]string{}
	for _, f := range files {
		if f.syntax == nil || f.isTest() {
			continue
		}
		directory := path.Dir(f.path)
		domain := directory == "model" || directory == "model/policy"
		add := func(word string) {
			if isWord(word) {
				words[word] = f.path
			}
		}
		f.inspect(func(n ast.Node) {
			switch node := n.(type) {
			case *ast.BasicLit:
				if text := unquote(node); f.path == keysFile && strings.Trim(text, "-:") != text {
					add(strings.Trim(text, "-:"))
				}
			case *ast.ValueSpec:
				for _, value := range node.Values {
					if domain && ast.IsExported(node.Names[0].Name) {
						add(unquote(value))
					}
				}
			case *ast.Field:
				if domain && node.Tag != nil {
					_, name, _ := strings.Cut(node.Tag.Value, `json:"`)
					name, _, _ = strings.Cut(name, `"`)
					name, _, _ = strings.Cut(name, ",")
					add(name)
				}
			case *ast.CallExpr:
				if stores := f.path == "internal/store/codec.go" || f.path == "internal/store/journal.go"; stores && called(node, "text", "time", "number", "flag") ||
					isLogged(directory) && called(node, "Str", "Int", "Bool", "Time", "Dur", "AnErr") {
					add(unquote(node.Args[0]))
				}
			}
		})
	}
	return words
}

// isLogged reports whether the lines that a package logs are those of a daemon.
func isLogged(directory string) bool {
	return slices.Contains([]string{"cmd/refreshd", "dispatcher", "poller", "worker", "internal/backoff", "internal/faces/health"}, directory)
}

// called reports whether a call is that of a method of one of the names, with a name and a value.
func called(call *ast.CallExpr, names ...string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && len(call.Args) == 2 && slices.Contains(names, selector.Sel.Name)
}

func unquote(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// isWord reports whether a text is one name, or words in lower case.
func isWord(text string) bool {
	return len(text) > 1 && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLower(r) && r != '_' && r != ' ' })
}

func TestAWordThatTheGlossaryLacksIsFound(t *testing.T) {
	files := readTree(t, mapTree(map[string]string{
		"internal/store/keys.go":    "package store\nvar a, b = \"-input\", \":model:\"",
		"internal/store/codec.go":   "package store\nfunc f() { c.text(\"rrule\", &m.Rule); c.other(\"x\", 1) }",
		"model/event.go":            "package model\ntype Event string\nconst EventStart Event = \"start\"\nconst hidden = \"hidden\"\nvar Layout = \"2006\"",
		"model/history.go":          "package model\ntype Attempt struct { Delay int `json:\"delay_ms,omitempty\"`; none int `json:\"-\"` }",
		"poller/round.go":           "package poller\nfunc f() { log.Int(\"left\", 1); flags.Int(\"batch\", 1, \"help\") }",
		"poller/a_test.go":          "package poller\nfunc f() { log.Int(\"seeds\", 1) }",
		"internal/trials/demo/a.go": "package demo\nfunc f() { log.Int(\"times\", 1) }",
	}))
	const head = "| word | meaning | where |\n|---|---|---|\n"
	row := func(word string) string { return "| " + word + " | means | `model.Event` |\n" }
	all := row("`delay_ms`") + row("input") + row("left") + row("model") + row("`rrule`") + row("start")
	for document, want := range map[string][]string{
		head + all:                                       nil,
		head + all + row("zone"):                         nil,
		head + all + row("`start`"):                      {"start: expected one row, found another"},
		head + all + row("key"):                          {"key: expected the alphabet, found it behind start"},
		head + all + "| zone |  | x |\n":                 {"zone: expected a meaning, found none"},
		head + all + "| zone | means | `model.Zone` |\n": {"expected a name of the repository, found model.Zone"},
		head + all + "| zone | `model/event.go` | `model/zone.go`, `zone.lua` |\n":   {"expected a source of the repository, found model/zone.go", "expected a source of the repository, found zone.lua"},
		head + strings.Replace(all, row("left"), "", 1):                              {"left: expected a row, as poller/round.go has the word"},
		head + strings.Replace(all, row("input"), row("input list"), 1):              {"input: expected a row, as internal/store/keys.go has the word"},
		head + strings.Replace(all, row("`delay_ms`"), row("delay ms"), 1):           {"delay_ms: expected a row, as model/history.go has the word"},
		head + strings.Replace(all, row("`rrule`")+row("start"), row("starting"), 1): {"rrule: expected a row, as internal/store/codec.go has the word", "start: expected a row, as model/event.go has the word"},
	} {
		if diff := cmp.Diff(want, unexplained(document, files)); diff != "" {
			t.Errorf("%s\nplaces (-want +got):\n%s", document, diff)
		}
	}
}

// retired are words that the code once had for what the glossary names otherwise.
var retired = strings.Fields(`trouble desk obey foresight reckoning chronos patient ward attend surroundings rig lie proof sleepy silent crew thin`)

func TestRetiredWordsAreNoNames(t *testing.T) {
	for _, place := range retiredIn(readTree(t, os.DirFS("../.."))) {
		t.Error(place)
	}
}

// retiredIn returns one line for each file, and each name in a file that is no test, which has a retired word as one of its parts. A log
// field or a text is no name.
func retiredIn(files []file) (places []string) {
	for _, f := range files {
		for _, word := range partsOf(strings.TrimSuffix(path.Base(f.path), path.Ext(f.path))) {
			if slices.Contains(retired, word) {
				places = append(places, fmt.Sprintf("%s: expected a file without the retired word %s", f.path, word))
			}
		}
		if f.syntax == nil || f.isTest() {
			continue
		}
		found := map[string]bool{}
		f.inspect(func(n ast.Node) {
			name, ok := n.(*ast.Ident)
			if !ok || found[name.Name] {
				return
			}
			for _, word := range partsOf(name.Name) {
				if slices.Contains(retired, word) {
					found[name.Name] = true
					places = append(places, fmt.Sprintf("%s: expected a name without the retired word %s, found %s", f.path, word, name.Name))
				}
			}
		})
	}
	return places
}

// part is one word of a name in camel case or snake case.
var part = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

func partsOf(name string) (words []string) {
	for _, word := range part.FindAllString(name, -1) {
		word = strings.ToLower(word)
		words = append(words, word)
		if one, plural := strings.CutSuffix(word, "s"); plural {
			words = append(words, one)
		}
	}
	return words
}

func TestARetiredWordIsFound(t *testing.T) {
	got := retiredIn(readTree(t, mapTree(map[string]string{
		"doctor/model.go":     "package doctor\ntype sickPatients []int\nfunc (w wardrobe) forward(attended, linesOfText int) { isSilent := \"patient\"; _ = isSilent }",
		"doctor/crew.go":      "package doctor",
		"doctor/thin_test.go": "package doctor\nvar patient int",
		"scripts/lie.lua":     "return 1",
		"doctor/crewman.go":   "package doctor",
	})))
	want := []string{
		"doctor/crew.go: expected a file without the retired word crew",
		"doctor/model.go: expected a name without the retired word patient, found sickPatients",
		"doctor/model.go: expected a name without the retired word silent, found isSilent",
		"doctor/thin_test.go: expected a file without the retired word thin",
		"scripts/lie.lua: expected a file without the retired word lie",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}
