package acl

import "strings"

// grant is what a role may do with some keys.
type grant struct {
	commands string // names with spaces between
	keys     []string
}

// String renders a selector.
func (g grant) String() string {
	var words []string
	for _, command := range strings.Fields(g.commands) {
		words = append(words, "+"+command)
	}
	return "(" + strings.Join(append(words, g.keys...), " ") + ")"
}

func allow(commands string, keys ...[]string) grant {
	g := grant{commands: commands}
	for _, some := range keys {
		g.keys = append(g.keys, some...)
	}
	return g
}

// reading, writing and both are patterns of keys by what may be done with them.
func reading(keys ...string) []string { return marked("%R~", keys) }

func writing(keys ...string) []string { return marked("%W~", keys) }

func both(keys ...string) []string { return marked("~", keys) }

func marked(mark string, keys []string) []string {
	patterns := make([]string, len(keys))
	for i, key := range keys {
		patterns[i] = mark + key
	}
	return patterns
}

// all stands for every uid or owner in a key.
const all = "*"
