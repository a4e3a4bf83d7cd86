package words

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Pattern is a regular expression that is tried only on a text that can match.
type Pattern struct {
	*regexp.Regexp
	needles []string // in lower case; each match contains one of them; none: it may match any text
}

// CompilePattern compiles a regular expression, and panics if it is none.
func CompilePattern(expr string) Pattern {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return Pattern{regexp.MustCompile(expr), needles(tree)}
}

// Fits reports whether a text may match.
func (p Pattern) Fits(text string) bool {
	lower := strings.ToLower(text)
	return len(p.needles) == 0 || slices.ContainsFunc(p.needles, func(needle string) bool { return strings.Contains(lower, needle) })
}

// Respellings write the matches of patterns in another way, one pattern after the other.
type Respellings []respelling

type respelling struct {
	Pattern
	with string
}

// Add adds a pattern, and the text for its matches as in regexp.Regexp.ReplaceAllString.
func (all *Respellings) Add(expr, with string) {
	*all = append(*all, respelling{CompilePattern(expr), with})
}

// Apply returns a text in these spellings.
func (all Respellings) Apply(text string) string {
	for _, r := range all {
		if r.Fits(text) {
			text = r.ReplaceAllString(text, r.with)
		}
	}
	return text
}

// needles are texts; each match contains one. Of a sequence it takes the part whose shortest text is longest.
func needles(tree *syntax.Regexp) (found []string) {
	switch tree.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(tree.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return needles(tree.Sub[0])
	case syntax.OpConcat:
		for _, part := range tree.Sub {
			if of := needles(part); shortest(of) > shortest(found) {
				found = of
			}
		}
	case syntax.OpAlternate:
		for _, part := range tree.Sub {
			of := needles(part)
			if of == nil {
				return nil
			}
			found = append(found, of...)
		}
	}
	return found
}

func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}
