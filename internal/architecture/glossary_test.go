package architecture

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

func TestEachWordStandsInTheGlossaryOnce(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	var others strings.Builder
	for _, page := range pages {
		if name := filepath.Base(page); name != "glossary.md" {
			others.WriteString(document(t, name))
		}
	}
	report(t, unexplained(document(t, "glossary.md"), others.String(), repository(t)))
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

// coders are the files that write and read the fields of a hash.
var coders = []string{"internal/store/codec.go", "internal/store/journal.go"}

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
		add := func(text string) {
			if len(text) > 1 && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLower(r) && r != '_' }) { // one name
				words[text] = f.path
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
				selector, is := node.Fun.(*ast.SelectorExpr) // a method with a name and a value
				if is && slices.Contains(coders, f.path) && len(node.Args) == 2 && slices.Contains([]string{"text", "time", "number", "flag"}, selector.Sel.Name) {
					add(unquote(node.Args[0]))
				}
			}
		})
	}
	return words
}

func unquote(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}
