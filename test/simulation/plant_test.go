package simulation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/scripts"
)

// These lines of txn.lua do what Go has decided, whatever it is: they run a step of an item, check an item, and write what was
// collected. A planted line looks at the command and its key.
const (
	runs   = "local reply = step.run(unpack(args, 1, step.n))"
	checks = "refusal = " + judges
	judges = "refuses(check.how, check.code, reply, one, two)"
	writes = "redis.call(group.args[1], group.args[2], unpack(list, first_of, last_of))"
)

// takes matches the step of a start that takes a place of a limit.
var takes = does("ZADD", ":limit:") + " and step.run == redis.call"

// does matches steps with a command and a key, by a pattern.
func does(command, key string) string {
	return fmt.Sprintf("args[1] == '%s' and string.find(args[2], '%s')", command, key)
}

// without leaves out the steps for which all conditions hold.
func without(conditions ...string) string {
	return strings.Replace(runs, "step.run", "not ("+strings.Join(conditions, " and ")+") and step.run", 1)
}

// removed lets other keys go than the keys of a removed model.
func removed(keys string) string {
	return "local reply if args[1] == 'DEL' and step.n == 4 then reply = step.run('DEL', " + keys + ") else reply = step.run(unpack(args, 1, step.n)) end"
}

// earlier defines whether a step before has a command and a key.
func earlier(command, key string) string {
	return "local earlier for n = 1, i - 1 do local args = steps[n].args earlier = earlier or " + does(command, key) + " end "
}

// having defines whether any step of the item is some other.
func having(name, other string) string {
	return fmt.Sprintf("local %[1]s for _, other in ipairs(steps) do %[1]s = %[1]s or %s end ", name, other)
}

// unchecked leaves out what a verb checks, on a condition.
func unchecked(verb, condition string) string { return unless("check.run == verbs."+verb, condition) }

// unless leaves out the checks for which all conditions hold.
func unless(conditions ...string) string {
	return "refusal = not (" + strings.Join(conditions, " and ") + ") and " + judges
}

// counted is the check that a key has room for a start.
const counted = "args[1] == 'ZCARD' and check.how == '<'"

// recounted lets that check see another number than Redis answers.
func recounted(reply string) string {
	return "if " + counted + " then reply = " + reply + " end " + checks
}

// grouped is of a group that adds to a set, or removes from it.
func grouped(command, set string) string {
	return fmt.Sprintf("group.args[1] == '%s' and string.find(group.args[2], ':%s$')", command, set)
}

func uncollected(condition string) string {
	return "if not (" + condition + ") then " + writes + " end"
}

// rescored gives the members of a set other scores.
func rescored(set, score string) string {
	return "if " + grouped("ZADD", set) + " then for i = first_of, last_of, 2 do list[i] = " + score + " end end " + writes
}

// neverIn and stays are lines that lead no model into a set, or none out of it.
func neverIn(set string) string { return uncollected(grouped("ZADD", set)) }

func stays(set string) string { return uncollected(grouped("ZREM", set)) }

var localNames = regexp.MustCompile(`\blocal (?:function )?([a-z_]+(?:, [a-z_]+)*)`)

// TestEachPlantedLineDefinesNamesThatItsScriptUses keeps a planted bug from being another one than it says: a script that lacks a name ends with an
// error, and a name that nothing uses plants nothing.
func TestEachPlantedLineDefinesNamesThatItsScriptUses(t *testing.T) {
	t.Parallel()
	sources := scripts.Sources()
	defined := func(line string) (names []string) {
		for _, found := range localNames.FindAllStringSubmatch(line, -1) {
			names = append(names, strings.Split(found[1], ", ")...)
		}
		return names
	}
	for _, planted := range bugs {
		if planted.mark == "" {
			continue
		}
		file := planted.script(t, sources)
		rest := replaceLine(t, sources[file], planted.mark, "")
		honest := strings.SplitN(sources[file], " --@ "+planted.mark+"\n", 2)[0]
		honest = honest[strings.LastIndex(honest, "\n")+1:]
		for _, name := range defined(planted.line) {
			if used := regexp.MustCompile(`\b` + name + `\b`); !used.MatchString(rest) && len(used.FindAllString(planted.line, 2)) < 2 {
				t.Errorf("%s: %s defines %s, which %s never uses", planted.name, planted.line, name, planted.file)
			}
		}
		for _, name := range defined(honest) {
			if !slices.Contains(defined(planted.line), name) && regexp.MustCompile(`\b`+name+`\b`).MatchString(rest) {
				t.Errorf("%s: %s uses %s, which %q does not define", planted.name, file, name, planted.line)
			}
		}
	}
}
