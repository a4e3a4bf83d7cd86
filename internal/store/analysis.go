package store

import (
	"github.com/refreshd/refreshd/scripts"

	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Needs are the rights that a script needs.
type Needs struct {
	Keys     []string // that are passed to it, in the order of its header
	Accesses []Access
}

// Access is one command of a script on one of its keys.
type Access struct {
	Command string // upper case
	Key     string
	Target  bool // the key that LMOVE moves to
}

// NeedsOf tells what a script needs in a queue. The uid or the name in a key is "*", and a key such as host=example.com "*=*", so that whoever
// settles circuits cannot set that of the queue; owner stands for the owner of a list.
func NeedsOf(file string, keys Keys, owner string) (Needs, error) {
	a, err := analyse(scripts.Sources()[file])
	if err != nil {
		return Needs{}, fmt.Errorf("analyse script %s: %w", file, err)
	}
	render := strings.NewReplacer("<queue>", keys.Queue(), "<uid>", "*", "<name>", "*", "<key>", "*=*", "<owner>", owner).Replace
	var needs Needs
	for _, key := range a.Keys() {
		needs.Keys = append(needs.Keys, render(key.Pattern))
	}
	for _, access := range a.accesses {
		access.Key = render(access.Key)
		needs.Accesses = append(needs.Accesses, access)
	}
	return needs, nil
}

// analysis is what the text of a script tells: what its header explains, and what its body does. It relies on the conventions of this
// package: a key is an entry of KEYS or a local name for one. KEYS[key] and KEYS[key + 1] are keys of an item, next_key('label') is a further one of
// it, as error_key('error', place) is, and KEYS[place] is any key.
type analysis struct {
	scripts.Header
	body     string              // without comments
	names    map[string][]string // local name to the patterns of the keys that it stands for
	accesses []Access
}

var (
	commentPattern = regexp.MustCompile(`\s*--[^\n]*`)
	localPattern   = regexp.MustCompile(`\blocal ([a-z_, ]+) = ([^\n]+)`)
	nextKey        = regexp.MustCompile(`^(?:next|error)_key\('([a-z]+)'(?:, place)?\)$`)
	keyUse         = regexp.MustCompile(`^KEYS\[(\w+)(?: \+ (\d+))?\]$`)
	callPattern    = regexp.MustCompile(`\bredis\.p?call\(`)
	commandPattern = regexp.MustCompile(`^'[A-Z]+'$`)
)

// analyse reads the text of a script. Beside an error the analysis holds what could be read.
func analyse(text string) (*analysis, error) {
	if text == "" {
		return &analysis{}, fmt.Errorf("expected the file of a script, found none")
	}
	a := &analysis{names: map[string][]string{}}
	a.Header = scripts.ReadHeader(text)
	a.body = commentPattern.ReplaceAllString(a.Body, "")
	for _, local := range localPattern.FindAllStringSubmatch(a.body, -1) {
		values := splitArguments(local[2])
		for i, name := range strings.Split(local[1], ", ") {
			if i < len(values) && (strings.HasPrefix(values[i], "KEYS[") || nextKey.MatchString(values[i])) {
				a.names[name] = a.keysOf(values[i])
			}
		}
	}
	var faults []error
	for _, at := range callPattern.FindAllStringIndex(a.body, -1) {
		faults = append(faults, a.readCall(splitArguments(a.body[at[1]:])))
	}
	return a, errors.Join(faults...)
}

// readCall notes what a command does with its keys.
func (a *analysis) readCall(args []string) error {
	if !commandPattern.MatchString(args[0]) {
		return fmt.Errorf("expected a command in quotes, found %s", args[0])
	}
	command := strings.Trim(args[0], "'")
	arguments := args[1:min(2, len(args))]
	switch command {
	case "TIME":
		return nil
	case "DEL":
		arguments = args[1:]
	case "LMOVE":
		arguments = args[1:3]
	}
	for i, argument := range arguments {
		keys := a.keysOf(argument)
		if keys == nil {
			return fmt.Errorf("expected an entry of KEYS as a key of %s, found %s", command, argument)
		}
		for _, key := range keys {
			access := Access{command, key, command == "LMOVE" && i == 1}
			if !slices.Contains(a.accesses, access) {
				a.accesses = append(a.accesses, access)
			}
		}
	}
	return nil
}

// keysOf are the patterns of the keys that an expression may stand for; nil: it is no key.
func (a *analysis) keysOf(expression string) []string {
	if next := nextKey.FindStringSubmatch(expression); next != nil {
		return a.furtherKeys(next[1])
	}
	use := keyUse.FindStringSubmatch(expression)
	if use == nil {
		return a.names[expression]
	}
	var shared, item, placed []string
	n, _ := strconv.Atoi(use[1])
	for _, key := range a.Keys() {
		switch {
		case key.Item:
			item = append(item, key.Pattern)
		case key.Place == n:
			placed = append(placed, key.Pattern)
			fallthrough
		default:
			shared = append(shared, key.Pattern)
		}
	}
	switch use[1] {
	case "place":
		return append(shared, item...)
	case "key":
		if n, _ = strconv.Atoi("0" + use[2]); n < len(item) {
			placed = item[n : n+1]
		}
	}
	return placed
}

// furtherKeys are the patterns of the keys of an item that are named like this, with something behind it.
func (a *analysis) furtherKeys(name string) (patterns []string) {
	for _, key := range a.Keys() {
		if key.Item && strings.HasPrefix(key.Pattern, "<queue>:"+name+":") {
			patterns = append(patterns, key.Pattern)
		}
	}
	return patterns
}

// splitArguments splits a list at the commas that stand in no brackets and no quotes, and ends at the bracket that closes it.
func splitArguments(text string) []string {
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
