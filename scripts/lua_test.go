package scripts

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// luaScript is what the checker understands of a script: what its header promises and what its body does.
type luaScript struct {
	name    string
	lines   int
	purpose string
	declared
	returns string
	body    string            // without comments
	locals  map[string]string // name to the expression that it begins with
}

// declared are the entries of KEYS and ARGV that a header explains, in its order.
type declared []declaration

type declaration struct {
	table string // KEYS or ARGV
	first int
	open  bool // "KEYS[9..]": this one and all behind it
	text  string
}

// keyPattern is one key of a header: "<queue>:due zset".
type keyPattern struct{ pattern, kind string }

var (
	commentPattern     = regexp.MustCompile(`\s*--[^\n]*`)
	declarationPattern = regexp.MustCompile(`(KEYS|ARGV)\[(\d+)(\.\.)?\]`)
	returnsPattern     = regexp.MustCompile(`\bReturns\b`)
	patternPattern     = regexp.MustCompile(`(<queue>\S*) (list|hash|zset|stream|string)\b`)
	localPattern       = regexp.MustCompile(`\blocal ([a-z_]+(?:, [a-z_]+)*) = ([^\n]+)`)
	forPattern         = regexp.MustCompile(`\bfor ([a-z_]+) = ([^\n]+?) do`)
	fixedUse           = regexp.MustCompile(`(KEYS|ARGV)\[(\d+)\]`)
	rangeUse           = regexp.MustCompile(`unpack\((KEYS|ARGV), (\d+), (\d+)\)`)
	openUse            = regexp.MustCompile(`(?:unpack\((KEYS|ARGV), |\b(KEYS|ARGV)\[)([a-z_]+)`)
	groupUse           = regexp.MustCompile(`unpack\(KEYS, ([a-z_]+), ([a-z_]+) \+ (\d+)\)`)
	callPattern        = regexp.MustCompile(`\bredis\.p?call\(`)
	functionPattern    = regexp.MustCompile(`\bfunction ([a-z_]+)\(([a-z_, ]*)\)`)
	wordPattern        = regexp.MustCompile(`[a-z_]+`)
)

func readLua(name, text string) luaScript {
	header, rest := splitHeader(text)
	s := luaScript{name: name, lines: strings.Count(text, "\n"), body: commentPattern.ReplaceAllString(rest, "")}
	if at := returnsPattern.FindStringIndex(header); at != nil {
		header, s.returns = header[:at[0]], strings.TrimSpace(header[at[1]:])
	}
	marks := declarationPattern.FindAllStringSubmatchIndex(header, -1)
	s.purpose = strings.TrimSpace(header)
	if len(marks) > 0 {
		s.purpose = strings.TrimSpace(header[:marks[0][0]])
	}
	for i, mark := range marks {
		end := len(header)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		first, _ := strconv.Atoi(header[mark[4]:mark[5]])
		s.declared = append(s.declared, declaration{header[mark[2]:mark[3]], first, mark[6] >= 0, strings.TrimSpace(header[mark[1]:end])})
	}
	s.readLocals()
	return s
}

// splitHeader returns the comment that a script opens with, as one text, and what follows.
func splitHeader(text string) (header, rest string) {
	for {
		line, after, found := strings.Cut(text, "\n")
		if !found || !strings.HasPrefix(line, "--") {
			return header, text
		}
		header, text = header+strings.TrimPrefix(line, "--")+" ", after
	}
}

// readLocals notes what each local begins with; names that get the results of one unpack get one entry each.
func (s *luaScript) readLocals() {
	s.locals = map[string]string{}
	for _, found := range append(localPattern.FindAllStringSubmatch(s.body, -1), forPattern.FindAllStringSubmatch(s.body, -1)...) {
		names, values := strings.Split(found[1], ", "), splitTop(found[2])
		if spread := rangeUse.FindStringSubmatch(values[0]); spread != nil {
			values = spreadOut(spread[1], spread[2], len(names))
		} else if groupUse.MatchString(values[0]) {
			values = slices.Repeat([]string{"KEYS[..]"}, len(names))
		}
		for i, name := range names[:min(len(names), len(values))] {
			s.locals[name] = values[i]
		}
	}
}

func spreadOut(table, first string, n int) []string {
	from, _ := strconv.Atoi(first)
	values := make([]string, n)
	for i := range values {
		values[i] = table + "[" + strconv.Itoa(from+i) + "]"
	}
	return values
}

// splitTop splits a list at the commas that stand in no brackets and no quotes, and ends at the bracket that closes it.
func splitTop(text string) []string {
	var parts []string
	depth, from, quoted := 0, 0, false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			if depth--; depth < 0 {
				return append(parts, strings.TrimSpace(text[from:i]))
			}
		case c == ',' && depth == 0:
			parts, from = append(parts, strings.TrimSpace(text[from:i])), i+1
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}

// of returns the declarations of one table.
func (d declared) of(table string) declared {
	return slices.DeleteFunc(slices.Clone(d), func(one declaration) bool { return one.table != table })
}

// patterns lists the keys that a declaration or a whole header names.
func (d declared) patterns() []keyPattern {
	var all []keyPattern
	for _, one := range d.of("KEYS") {
		for _, found := range patternPattern.FindAllStringSubmatch(one.text, -1) {
			all = append(all, keyPattern{found[1], found[2]})
		}
	}
	return all
}

// uses lists which entries of a table the body reads: by number, and from which number on by a variable.
func (s *luaScript) uses(table string) (fixed map[int]bool, open int) {
	fixed = map[int]bool{}
	for _, found := range fixedUse.FindAllStringSubmatch(s.body, -1) {
		if n, _ := strconv.Atoi(found[2]); found[1] == table {
			fixed[n] = true
		}
	}
	for _, found := range rangeUse.FindAllStringSubmatch(s.body, -1) {
		first, _ := strconv.Atoi(found[2])
		last, _ := strconv.Atoi(found[3])
		for n := first; n <= last && found[1] == table; n++ {
			fixed[n] = true
		}
	}
	for _, found := range openUse.FindAllStringSubmatch(s.body, -1) {
		if first, err := strconv.Atoi(s.locals[found[3]]); found[1]+found[2] == table && err == nil {
			open = first
		}
	}
	return fixed, open
}

// group is how many keys the body takes at once from the open end of KEYS.
func (s *luaScript) group() int {
	if found := groupUse.FindStringSubmatch(s.body); found != nil && found[1] == found[2] {
		n, _ := strconv.Atoi(found[3])
		return n + 1
	}
	return 0
}

// call is one use of Redis or of a local function.
type call struct {
	name string
	args []string
}

func (s *luaScript) calls(name *regexp.Regexp) []call {
	var all []call
	for _, at := range name.FindAllStringIndex(s.body, -1) {
		all = append(all, call{s.body[at[0] : at[1]-1], splitTop(s.body[at[1]:])})
	}
	return all
}

// keyArguments are those arguments of a call of Redis that name keys.
func (c call) keyArguments() []string {
	switch c.args[0] {
	case "'TIME'":
		return nil
	case "'DEL'":
		return c.args[1:]
	case "'LMOVE'":
		return c.args[1:3]
	default:
		return c.args[1:2]
	}
}

// isKey reports whether an expression is an entry of KEYS or a local name for one.
func (s *luaScript) isKey(expression string) bool {
	return strings.HasPrefix(expression, "KEYS[") || strings.HasPrefix(s.locals[expression], "KEYS[")
}

// isParameter reports whether an expression is a parameter that is handed a key by every caller.
func (s *luaScript) isParameter(expression string) bool {
	for _, function := range functionPattern.FindAllStringSubmatch(s.body, -1) {
		at := slices.Index(strings.Split(function[2], ", "), expression)
		if at < 0 {
			continue
		}
		for _, call := range s.calls(regexp.MustCompile(`\b` + function[1] + `\(`))[1:] { // the first is the function itself
			if !s.isKey(call.args[at]) {
				return false
			}
		}
		return true
	}
	return false
}
