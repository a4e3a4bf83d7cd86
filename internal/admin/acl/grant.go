package acl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/scripts"
)

// part lists the actions of a role: the scripts that it runs, and other commands.
type part struct {
	runs []run
	// never are commands of its scripts that this role has no use for, with their keys.
	never  []grant
	direct []grant
}

// run is a script, and the owner of the lists that it gets.
type run struct{ script, owner string }

const (
	all    = "*" // every uid, or every owner of a list
	nobody = ""  // the owner where a script is run without a list
)

type grant struct {
	commands []string
	keys     []string // patterns
}

// String renders a selector.
func (g grant) String() string {
	return "(+" + strings.Join(g.commands, " +") + " " + strings.Join(g.keys, " ") + ")"
}

// allow grants commands, in one text, on keys that may be both read and written.
func allow(commands string, keys ...[]string) grant {
	return grant{strings.Fields(commands), slices.Concat(keys...)}
}

// reading, writing and both are patterns of keys by the access to them.
func reading(keys ...string) []string { return marked("%R~", keys) }

func writing(keys ...string) []string { return marked("%W~", keys) }

func both(keys ...string) []string { return marked("~", keys) }

func marked(mark string, keys []string) []string {
	return redis.Map(keys, func(key string) string { return mark + key })
}

// grants returns the grants for its scripts and its other commands. A script needs EVALSHA on all keys that are passed to it, and each
// command inside on the keys that it touches there. A command may touch several keys, which must be in one grant.
func (p part) grants(keys store.Keys) ([]grant, error) {
	passed, touched := map[string]bool{}, map[string]map[string]bool{} // command to its keys; true: more than the target of LMOVE
	for _, run := range p.runs {
		script, known := scripts.Sources()[run.script]
		if !known {
			return nil, fmt.Errorf("expected the file of a script, found %s", run.script)
		}
		// The uid or the name in a key is "*", and a key such as host=example.com "*=*", so nobody who settles circuits can set the circuit of the queue.
		render := strings.NewReplacer("<queue>", keys.Queue, "<uid>", "*", "<name>", "*", "<key>", "*=*", "<owner>", run.owner).Replace
		for _, key := range indexed(scripts.ReadHeader(script).Keys()) {
			pattern := render(key.Pattern)
			passed[pattern] = true
			if strings.Contains(script, "'TYPE'") { // it looks at the types of its keys
				key.Commands = append(key.Commands, "TYPE")
			}
			for _, command := range key.Commands {
				command, target := strings.CutSuffix(strings.ToLower(command), "-to")
				if touched[command] == nil {
					touched[command] = map[string]bool{}
				}
				touched[command][pattern] = touched[command][pattern] || !target
			}
		}
	}
	for _, never := range p.never {
		for _, command := range never.commands {
			for _, key := range never.keys {
				if _, found := touched[command][key]; !found {
					return nil, fmt.Errorf("expected a script with %s of %s, found none", command, key)
				}
				delete(touched[command], key)
			}
		}
	}
	if len(p.runs) == 0 {
		return p.direct, nil
	}
	grants := []grant{{[]string{"evalsha"}, both(slices.Sorted(maps.Keys(passed))...)}}
	return append(append(grants, merge(touched)...), p.direct...), nil
}

// indexed are keys with one of each index in the place of <queue>:<index>.
func indexed(keys []scripts.Key) (all []scripts.Key) {
	for _, key := range keys {
		names := []string{key.Pattern}
		if key.Pattern == "<queue>:<index>" {
			names = redis.Map(store.ScoreIndexes[:], func(index store.ScoreIndex) string { return "<queue>:" + index.Name })
		}
		for _, key.Pattern = range names {
			key.Commands = slices.Clip(key.Commands)
			all = append(all, key)
		}
	}
	return all
}

func merge(touched map[string]map[string]bool) (grants []grant) {
	for _, command := range slices.Sorted(maps.Keys(touched)) {
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(touched[command])) {
			mark := "~"
			if !touched[command][key] {
				mark = "%W~"
			}
			keys = append(keys, mark+key)
		}
		same := slices.IndexFunc(grants, func(g grant) bool { return slices.Equal(g.keys, keys) })
		switch {
		case keys == nil:
		case same >= 0:
			grants[same].commands = append(grants[same].commands, command)
		default:
			grants = append(grants, grant{[]string{command}, keys})
		}
	}
	return grants
}
