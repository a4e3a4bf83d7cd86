package main

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestASchemeThatDoesNotFitTheServerIsNamed(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	ca.Issue(t, "server")
	server, port := testkit.TLS(t, ca)
	c := &console{t: t}
	expectContains(t, c.fail(exitFailed, "stats", "--redis", "rediss://"+server.Addr), "; the server does not speak TLS there: try redis://\n")
	expectContains(t, c.fail(exitFailed, "stats", "--redis", "redis://127.0.0.1:"+port), "; the server speaks TLS there: try rediss://\n")
	expectContains(t, c.fail(exitFailed, "dispatcher", "--strict", "--redis", "redis://127.0.0.1:"+port), "; the server speaks TLS there: try rediss://\n")
}
