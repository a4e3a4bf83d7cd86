package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// offered are the values that a shell is offered for the last of some words.
func (c *console) offered(line ...string) string {
	c.t.Helper()
	text, _, _ := strings.Cut(c.do(append([]string{"__complete"}, line...)...), ":")
	return strings.Join(strings.Fields(text), " ")
}

func TestAShellIsOfferedTheValuesThatThereAre(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = "{uid: tbl_1}\n---\n{uid: tbl_2}\n---\n{uid: banner}\n"
		c.do("model", "put", "-")
		c.in = "name: nightly\ntimeout: 5m\n"
		c.do("policy", "put", "-")
		c.in = "name: weekly\ntimeout: 5m\n"
		c.do("policy", "put", "-")
		for line, want := range map[string]string{
			"model ls --status ":           "disabled scheduled due queued processing running finished parked failing fresh never late stale broken",
			"acl --role ":                  strings.Join(roleNames(), " "),
			"model put x --format ":        "auto yaml json jsonl",
			"stats --log-level ":           "trace debug info warn error",
			"stats -o ":                    "table json",
			"simulate -o ":                 "table json mermaid svg",
			"model get tbl":                "tbl_1 tbl_2",
			"model get tbl_1 ":             "",
			"model run tbl_1 ":             "banner tbl_2",
			"explain ":                     "banner tbl_1 tbl_2",
			"history b":                    "banner",
			"policy get ":                  "default nightly weekly",
			"policy diff nightly ":         "default weekly",
			"simulate --policy ni":         "nightly",
			"model get --queue other tbl_": "",
		} {
			if got := c.offered(strings.Split(line, " ")...); got != want {
				t.Errorf("%s: want %q, got %q", line, want, got)
			}
		}
	})
}

func TestOfManyModelsAShellIsOfferedAScreenful(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for i := range 120 {
		c.in += fmt.Sprintf("{\"uid\":\"m%03d\"}\n", i)
	}
	c.do("model", "put", "-", "--format", "jsonl")
	if got := strings.Fields(c.offered("model", "get", "")); len(got) != mostOffered {
		t.Errorf("want %d uids, got %d", mostOffered, len(got))
	}
}

func TestAShellIsToldNothingWhenRedisIsAway(t *testing.T) {
	c := &console{t: t, env: map[string]string{"REDIS_URL": "redis://127.0.0.1:1"}}
	code, stdout, _ := c.run("__complete", "model", "get", "")
	if code != exitDone || stdout != ":4\n" {
		t.Errorf("want nothing offered, got %d %q", code, stdout)
	}
}
