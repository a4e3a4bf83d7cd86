package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { Main(m) }

func TestMiniredisExpiresKeys(t *testing.T) {
	s := Miniredis(t)
	client := s.Client(t)
	must(t, client.Set(t.Context(), "k", "v", time.Millisecond).Err())
	check.Eventually(t, "the key expires", func() bool { return errors.Is(client.Get(t.Context(), "k").Err(), redis.Nil) })
}

// lent runs test as a subtest and returns the server that it was lent, idle again.
func lent(t *testing.T, name string, test func(t *testing.T, s *Server)) *Server {
	t.Helper()
	var server *Server
	t.Run(name, func(t *testing.T) {
		server = Redis(t)
		test(t, server)
	})
	if server == nil {
		t.Skip("no redis-server")
	}
	return server
}

func TestIdleServerIsLentAgainEmpty(t *testing.T) {
	first := lent(t, "first", func(t *testing.T, s *Server) {
		client := s.Client(t)
		client.Set(t.Context(), "left", "over", 0)
		client.ScriptLoad(t.Context(), "return 1")
		client.Do(t.Context(), "ACL", "SETUSER", "left", "on", "+@all")
	})
	second := lent(t, "second", func(t *testing.T, s *Server) {
		dump := s.Dump(t)
		failIf(t, len(dump) != 0, "a server just lent holds %v, want nothing", dump)
		err := s.Client(t).EvalSha(t.Context(), redis.NewScript("return 1").Hash(), nil).Err()
		failIf(t, !redis.HasErrorPrefix(err, "NOSCRIPT"), "EVALSHA of an earlier test's script = %v, want NOSCRIPT", err)
		users, err := s.Client(t).Do(t.Context(), "ACL", "USERS").StringSlice()
		failIf(t, err != nil || len(users) != 1, "a server just lent has the users %v, %v, want the default one", users, err)
	})
	failIf(t, first.Addr != second.Addr, "second test got %s, want the idle %s", second.Addr, first.Addr)
}

func TestSpoiltServerIsNotLentAgain(t *testing.T) {
	spoil := map[string]func(t *testing.T, s *Server){
		"killed":   func(t *testing.T, s *Server) { s.Kill(t) },
		"password": func(t *testing.T, s *Server) { s.Client(t).ConfigSet(t.Context(), "requirepass", "secret") },
		"memory":   func(t *testing.T, s *Server) { s.Client(t).ConfigSet(t.Context(), "maxmemory", "1mb") },
	}
	for name, do := range spoil {
		spoilt := lent(t, name, do)
		lent(t, name+" and after", func(t *testing.T, s *Server) {
			failIf(t, s.Addr == spoilt.Addr, "got the spoilt server %s again", s.Addr)
			if err := s.Client(t).Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAClusterWithAMovedSlotIsNotLentAgain(t *testing.T) {
	long.Only(t)
	var moved *Server
	t.Run("moves a slot", func(t *testing.T) {
		moved = Cluster(t)
		moved.On(t, "", func(ctx context.Context, client *redis.Client) error { // the cluster goes on serving
			nodes, err := client.ClusterNodes(ctx).Result()
			if err != nil {
				return err
			}
			lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(nodes), "\n"), func(line string) bool { return strings.Contains(line, "myself") })
			return client.Do(ctx, "CLUSTER", "SETSLOT", 0, "MIGRATING", strings.Fields(lines[0])[0]).Err()
		})
	})
	t.Run("and after", func(t *testing.T) {
		s := Cluster(t)
		failIf(t, moved != nil && s.Addr == moved.Addr, "got the cluster at %s again", s.Addr)
	})
}

func TestConnectionsOfAnEarlierTestAreClosed(t *testing.T) {
	var leaked *redis.Client
	lent(t, "leaks a connection", func(t *testing.T, s *Server) {
		leaked = redis.NewClient(s.Options().Simple())
		leaked.Ping(t.Context())
	})
	defer func() { _ = leaked.Close() }()
	lent(t, "is alone", func(t *testing.T, s *Server) {
		list := s.Client(t).ClientList(t.Context()).Val()
		got := strings.Count(list, "\n")
		failIf(t, got != 1, "found %d connections, want only the test's own:\n%s", got, list)
	})
}

func TestRestartKeepsWhatWasAppended(t *testing.T) {
	s := Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	client := s.Client(t)
	must(t, client.RPush(t.Context(), "l", "a", "b").Err())
	before := s.Dump(t)
	s.Kill(t)
	err := client.Ping(t.Context()).Err()
	failIf(t, err == nil, "PING to a killed server succeeded")
	s.Restart(t)
	diff := cmp.Diff(before, s.Dump(t))
	failIf(t, diff != "", "state after restart (-before +after):\n%s", diff)
}

func TestAClusterRefusesForeignSlotsAndIsDumpedWhole(t *testing.T) {
	long.Only(t)
	s := Cluster(t)
	client := s.Client(t)
	for i := range 30 { // of all nodes
		client.Set(t.Context(), fmt.Sprint("k", i), i, 0)
	}
	got := len(s.Dump(t))
	failIf(t, got != 30, "dump has %d keys, want 30", got)
	two := redis.NewScript("redis.call('SET', KEYS[1], 1) return redis.call('SET', KEYS[2], 1)")
	err := two.Run(t.Context(), client, []string{"{a}1", "{b}1"}).Err()
	failIf(t, !redis.HasErrorPrefix(err, "CROSSSLOT"), "a script over two slots = %v, want CROSSSLOT", err)
	undeclared := redis.NewScript("return redis.call('SET', 'elsewhere', KEYS[1])")
	err = undeclared.Run(t.Context(), client, []string{"{a}1"}).Err()
	failIf(t, err == nil, "a script that writes an undeclared key succeeded")
}

func TestDumpShowsEveryType(t *testing.T) {
	want := map[string]Value{
		"string": {Type: "string", Data: "s", Expires: true},
		"list":   {Type: "list", Data: []string{"a", "b"}},
		"hash":   {Type: "hash", Data: map[string]string{"f": "v"}},
		"zset":   {Type: "zset", Data: map[string]float64{"m": 1795225200000}},
		"set":    {Type: "set", Data: map[string]bool{"x": true, "y": true}},
		"stream": {Type: "stream", Data: Stream{
			Entries: []redis.XMessage{{ID: "1-1", Values: map[string]any{"f": "v"}}},
			Groups:  []Group{{Name: "g", LastDeliveredID: "0-0"}},
		}},
	}
	Both(t, func(t *testing.T, s *Server) {
		_, err := s.Client(t).Pipelined(t.Context(), func(p redis.Pipeliner) error {
			ctx := t.Context()
			p.Set(ctx, "string", "s", 0)
			p.Expire(ctx, "string", time.Hour)
			p.RPush(ctx, "list", "a", "b")
			p.HSet(ctx, "hash", "f", "v")
			p.ZAdd(ctx, "zset", redis.Z{Score: 1795225200000, Member: "m"})
			p.SAdd(ctx, "set", "x", "y")
			p.XAdd(ctx, &redis.XAddArgs{Stream: "stream", ID: "1-1", Values: []string{"f", "v"}})
			p.XGroupCreate(ctx, "stream", "g", "0")
			return nil
		})
		must(t, err)
		diff := cmp.Diff(want, s.Dump(t))
		failIf(t, diff != "", "dump (-want +got):\n%s", diff)
		s.Flush(t)
		left := s.Dump(t)
		failIf(t, len(left) > 0, "dump after Flush has %d keys, want none", len(left))
	})
}

func TestStartFailsWithTheServersOwnWords(t *testing.T) {
	RequireProgram(t, "redis-server", "redis-server")
	_, err := startSingle("--maxmemory-policy", "nonsense")
	failIf(t, !errors.Is(err, errExited) || !strings.Contains(err.Error(), "maxmemory-policy \"nonsense\""),
		"start with a wrong option = %v, want %v and the option", err, errExited)
}

// verdict is a testing.TB that notes how a test would have ended.
type verdict struct {
	testing.TB
	text string
}

func (v *verdict) Helper() {}

func (v *verdict) Skipf(format string, args ...any) { v.text = "skip: " + fmt.Sprintf(format, args...) }

func (v *verdict) Fatalf(format string, args ...any) {
	v.text += "fail: " + fmt.Sprintf(format, args...)
	panic(v)
}

func TestMissingProgramSkipsAndFailsInCI(t *testing.T) {
	const advice = "no-such-program not found in PATH: apt-get install some-package"
	tests := []struct{ ci, program, want string }{
		{"", "no-such-program", "skip: " + advice},
		{"true", "no-such-program", "fail: " + advice},
		{"true", "go", ""},
	}
	for _, test := range tests {
		t.Setenv("CI", test.ci)
		got := judge(test.program)
		failIf(t, got != test.want, "CI=%q: RequireProgram(%s): %q, want %q", test.ci, test.program, got, test.want)
	}
}

func judge(program string) string {
	v := &verdict{}
	func() {
		defer func() { _ = recover() }()
		RequireProgram(v, program, "some-package")
	}()
	return v.text
}
