package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/testkit"
)

// TestListShowAndDeleteAreKnownEverywhere visits all commands: none is named like another one beside it.
func TestListShowAndDeleteAreKnownEverywhere(t *testing.T) {
	lists := 0
	var visit func(*cobra.Command)
	visit = func(of *cobra.Command) {
		seen := make(map[string]bool)
		for _, command := range of.Commands() {
			for _, name := range namesOf(command) {
				failIf(t, seen[name], "%s: found two commands named %s", of.CommandPath(), name)
				seen[name] = true
			}
			for name, alias := range map[string]string{"ls": "list", "get": "show", "show": "get", "rm": "delete", "drop": "delete"} {
				failIf(t, command.Name() == name && !slices.Contains(command.Aliases, alias), "%s: expected the alias %s", command.CommandPath(), alias)
			}
			if command.Name() == "ls" {
				lists++
			}
			visit(command)
		}
	}
	visit(new(app).rootCommand())
	failIf(t, lists < 10, "expected many lists, found %d", lists)
	onEach(t, func(_ *testing.T, c *console, _ *testkit.Server) {
		c.put("uid: a\n")
		for _, same := range [][2]string{{"hold ls", "hold list"}, {"model get a", "model show a"}, {"model get a", "model inspect a"}, {"policy ls", "policy list"}} {
			short, long := c.do(append(line(same[0]), "-o", "json")...), c.do(append(line(same[1]), "-o", "json")...)
			failIf(t, short != long, "%s: expected what %s prints, found\n%s", same[1], same[0], long)
		}
		c.do("model", "delete", "a")
	})
}

// TestAWrongFieldNamesTheOneThatWasMeant: to people, and not in what programs read.
func TestAWrongFieldNamesTheOneThatWasMeant(t *testing.T) {
	const model = "uid: a\npolicy: {retrys: [0]}\n"
	const want = "policy.retrys: expected one of "
	const near = "found an unknown field; nearest: retries\n"
	onEach(t, func(_ *testing.T, c *console, _ *testkit.Server) {
		c.in = model
		expectContains(t, c.fail(exitFailed, "model", "put", "-"), want, near)
		expectContains(t, c.fail(exitFailed, "simulate", "--policy", "-"), want, near)
		path := file(t, "x.yaml", model)
		told := c.fail(exitFailed, "apply", "-f", filepath.Dir(path), "--owner", "o")
		expectContains(t, told, want, near)
		_, printed, _ := c.run("apply", "-f", filepath.Dir(path), "--owner", "o", "-o", "json")
		failIf(t, !strings.Contains(printed, `found an unknown field"`), "expected the refusal as it was, found %s", printed)
		c.in = "uid: a\nurl: x\n"
		expectContains(t, c.fail(exitFailed, "model", "put", "-"), "found an unknown field\n")
	})
}
