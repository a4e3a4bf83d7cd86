package acl

import (
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/scripts"
)

var failIf = check.FailIf

func TestAPartThatDoesNotFitItsScriptsIsRefused(t *testing.T) {
	keys, _ := store.NewKeys("q")
	for want, part := range map[string]part{
		"expected the file of a script, found no-such.lua": {runs: []run{{"no-such.lua", nobody}}},
		"expected a script with get of q:due, found none":  {runs: []run{{"read-due.lua", nobody}}, never: []grant{{[]string{"get"}, []string{"q:due"}}}},
	} {
		_, err := part.grants(keys)
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "expected %q, found %v", want, err)
	}
}

func TestEachScriptIsRunByARole(t *testing.T) {
	keys, _ := store.NewKeys("q")
	scope := Queue{keys, true}.scope()
	var runs []run
	for _, part := range []part{dispatcher(scope), poller(scope), worker(scope), notifier(scope), operator(scope)} {
		runs = append(runs, part.runs...)
	}
	for file := range scripts.Sources() {
		failIf(t, !slices.ContainsFunc(runs, func(r run) bool { return r.script == file }), "expected a role that runs %s, found none", file)
	}
}

// TestAScriptMayMoveToAListThatItMayNotReadFrom keeps an operator from taking attempts by the right to requeue them.
func TestAScriptMayMoveToAListThatItMayNotReadFrom(t *testing.T) {
	keys, _ := store.NewKeys("q")
	grants, err := operator(Queue{Keys: keys}.scope()).grants(keys)
	moves := func(g grant) bool { return g.String() == "(+lmove %W~q-input ~q:taken:*)" }
	failIf(t, err != nil || !slices.ContainsFunc(grants, moves), "expected q-input only written by lmove, found %v, %v", grants, err)
}
