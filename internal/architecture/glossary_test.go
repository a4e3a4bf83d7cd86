package architecture

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const glossary = "../../docs/glossary.md"

func TestEachWordStandsInTheGlossaryOnce(t *testing.T) {
	document, err := os.ReadFile(glossary)
	if err != nil {
		t.Fatal(err)
	}
	var others strings.Builder
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if text, err := os.ReadFile(page); err != nil {
			t.Fatal(err)
		} else if page != glossary {
			others.Write(text)
		}
	}
	for _, place := range unexplained(string(document), others.String(), repository(t)) {
		t.Error(place)
	}
}

// qualified is a name of Go code in a document, such as `model.State`.
var qualified = regexp.MustCompile("`([a-z]+(?:\\.[A-Z][A-Za-z]*){1,2})`")

// anyWord is a word of a document, or the name of a field.
var anyWord = regexp.MustCompile(`\w+`)

// sourceName is a file in a document, such as `model/why.go` or `commit.lua`.
var sourceName = regexp.MustCompile("`([a-z/_-]+\\.(?:go|lua))`")

// unexplained returns one line for each word that stands in the glossary twice or out of order, for each name in it that does not exist, and for
// each word that neither it nor another document has.
func unexplained(document, others string, files []file) (places []string) {
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
	for _, word := range anyWord.FindAllString(others, -1) {
		seen[word] = true
	}
	wanted := wordsOf(files)
	for _, word := range slices.Sorted(maps.Keys(wanted)) {
		if !seen[word] {
			places = append(places, fmt.Sprintf("%s: expected a row or another document, as %s has the word", word, wanted[word]))
		}
	}
	return places
}

// wordsOf returns the words that people meet in Redis, with a file that has them: parts of keys, fields of the hash, of the history and of
// policies, events and counters.
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
				if (f.path == "internal/store/codec.go" || f.path == "internal/store/journal.go") && called(node, "text", "time", "number", "flag") {
					add(unquote(node.Args[0]))
				}
			}
		})
	}
	return words
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

// isWord reports whether a text is one name in lower case.
func isWord(text string) bool {
	return len(text) > 1 && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLower(r) && r != '_' })
}

// retired are words that the code once had for what the glossary names otherwise.
var retired = strings.Fields(`trouble desk obey foresight reckoning chronos patient ward attend surroundings rig lie proof sleepy silent crew thin`)

func TestRetiredWordsAreNoNames(t *testing.T) {
	for _, place := range retiredIn(repository(t)) {
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
