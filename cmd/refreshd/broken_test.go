package main

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestAKeyOfAWrongTypeIsBrokenAndTellsWhatItIs(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = `{"uid":"good","payload":{}}`
		c.do("model", "put", "-")
		client := server.Client(t)
		if err := client.Set(t.Context(), "bigtables:model:text", "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.RPush(t.Context(), "bigtables:model:list", "x").Err(); err != nil {
			t.Fatal(err)
		}
		table := c.do("model", "ls", "--status", "broken")
		expectContains(t, table, "text", "list", "broken", "expected a hash, found a string", "expected a hash, found a list")
		if listed := c.objects(c.do("model", "ls", "-o", "json", "--status", "finished")); len(listed) != 0 {
			t.Errorf("want no finished model, got %v", listed)
		}
		got := c.object("model", "get", "text")
		if got["status"] != "broken" || got["fault"] != "key: expected a hash, found a string" {
			t.Errorf("want it broken, got %v", got)
		}
		expectContains(t, c.do("model", "get", "list"), "broken: its key holds something else than a model; refreshd doctor tells more")
		expectContains(t, c.do("explain", "list"), "broken")
	})
}
