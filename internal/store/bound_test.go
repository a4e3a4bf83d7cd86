package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/scripts"
)

// TestNoUserWhoMayOnlyRunScriptsCanMakeOneEndless passes what no method of Store passes: one list for two, and numbers without measure. A
// script without end stops Redis, for everybody.
func TestNoUserWhoMayOnlyRunScriptsCanMakeOneEndless(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t, "--save", "") // private: it may have to be killed
	b := newBench(t, server)
	const endless = "1000000000000000"
	k := b.Keys
	shared := []string{k.Due, k.Running, k.Input, k.Claimed(""), k.ClaimedCommands, k.Leader, k.Rejected, k.Journal, k.Outbox, k.Stats, k.Wake, k.Policies, k.Urgent}
	for name, test := range map[string]struct {
		script *redis.Script
		keys   []string
		args   []any
	}{
		"a list that is taken from itself":    {takeAttempts, []string{k.Taken("w"), k.Taken("w"), k.Workers}, []any{"1", "w", "1", endless, "7"}},
		"a list that is requeued into itself": {moveEntries, []string{k.Workers, k.Taken("w"), k.Taken("w")}, []any{"1", "w", "", "", "", endless}},
		"counters without number": {
			commit, append(slices.Clone(shared), k.Model("m"), k.Payload("m"), k.History("m")),
			[]any{1, 1, 1, 1, "", "settle", "m", "", endless},
		},
	} {
		b.seed(keys{":taken:w": list{"a", "b"}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		must(t, b.Clients.LoadScripts(ctx, b.Keys.Due))
		err := b.redis.EvalSha(ctx, test.script.Hash(), test.keys, test.args...).Err()
		stopIf(t, err != nil && !Answered(err), "%s: expected an answer, found %v", name, err)
		cancel()
		server.Flush(t)
	}
}

func TestNoScriptUnpacksWhatHasNoBound(t *testing.T) {
	t.Parallel()
	seen := 0
	for file, text := range scripts.Sources() {
		body := bodyOf(text)
		seen += strings.Count(body, "unpack(")
		for _, place := range unbound(body) {
			t.Errorf("%s: %s", file, place)
		}
	}
	failIf(t, seen < 10, "expected at least 10 places that unpack a list, found %d", seen)
}

// Each fault is planted in one place of a real script, and must be found.
func TestTheCheckOfUnpackFindsEachPlantedFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ file, old, fault, want string }{
		{"commit.lua", "unpack(add, first, last)", "unpack(add)", "unpack(add)"},
		{"commit.lua", "unpack(add, first, last)", "unpack(remove, 1, last)", "unpack(remove, 1, last)"},
		{"commit.lua", "unpack(add, first, last)", "unpack(add, 1, last)", "unpack(add, 1, last)"},
		{"commit.lua", "unpack(pushed, first, last)", "unpack(pushed, 1, #pushed)", "unpack(pushed, 1, #pushed)"},
		{"commit.lua", "in chunks(pushed) do", "in pairs(pushed) do", "unpack(pushed, first, last)"},
		{"commit.lua", "math.min(#entry, 1000)", "#entry", "unpack(entry, 1, #entry)"},
		{"commit.lua", "math.min(#entry, 1000)", "math.min(#entry, 10000)", "math.min(#entry, 10000)"},
		{"commit.lua", "math.min(#entry, 1000)", "math.min(#notice, 1000)", "math.min(#notice, 1000)"},
		{"commit.lua", "local size = 1000", "local size = 8000", "chunks of 8000"},
		{"commit.lua", "local size = 1000", "local size = 999", "chunks of 999"},
		{"measure-circuit.lua", "'HDEL', stats, unpack(old, first, last)", "'HDEL', stats, unpack(old)", "unpack(old)"},
		{"measure-circuit.lua", "local event = {'event',", "local event = {redis.call('HKEYS', stats),", "unpack(event)"},
		{"measure-circuit.lua", "local event = {", "local event = all or {", "unpack(event)"},
		{"measure-circuit.lua", "if tonumber(most) > 0 then", "event[#event + 1] = since if tonumber(most) > 0 then", "unpack(event)"},
	} {
		text := scripts.Sources()[test.file]
		stopIf(t, !strings.Contains(text, test.old), "%s: expected %q, found none", test.file, test.old)
		if found := fmt.Sprint(unbound(bodyOf(strings.ReplaceAll(text, test.old, test.fault)))); !strings.Contains(found, test.want) {
			t.Errorf("%s with %q: expected %q, found %s", test.file, test.fault, test.want, found)
		}
	}
}

// bodyOf is a script without its comments.
func bodyOf(script string) string {
	return commentPattern.ReplaceAllString(scripts.ReadHeader(script).Body, "")
}
