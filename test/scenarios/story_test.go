package scenarios

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

// step is one line of a story: when, what happens, and what the model is then. Times are RFC 3339, empty means absent.
type step struct {
	at string
	// do is the verb and the JSON fields that go with it:
	//   save, run        an application sends a command, and a poller applies it
	//   start            a dispatcher starts the model, and a worker takes the attempt
	//   lost             a dispatcher finds the deadline passed
	//   give_up          a dispatcher finds the time without a success used up
	//   succeed, fail    the worker sends its result, and a poller applies it
	//   outdated         the worker has failed on a payload that was replaced while it had it, and a poller notes it
	//   stay             dispatcher and poller look, and nothing changes
	do       string
	no       int    // attempt_no
	deadline string // deadline_at
	refresh  string // refresh_at
	why      string // refresh_why
	reason   string // refresh_disabled_user_friendly_reason; not empty: the model is disabled
}

type story struct {
	t          *testing.T
	redis      goredis.UniversalClient
	server     *testkit.Server
	queue      string
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
	now        time.Time
	definition string // JSON fields of a save

	starts int // attempts
}

// tell runs a story on each kind of server and compares the remains.
func tell(t *testing.T, definition string, steps []step, left remains) {
	on := func(t *testing.T, server *testkit.Server) {
		s := open(t, server, definition)
		for i, step := range steps {
			s.take(i, step)
		}
		s.compare(left)
	}
	testkit.BothIfLong(t, on)
	for name, lend := range map[string]func(testing.TB) *testkit.Server{"cluster": testkit.Cluster, "sentinel": testkit.Sentinel} {
		t.Run(name, func(t *testing.T) {
			long.Only(t)
			on(t, lend(t))
		})
	}
}

func open(t *testing.T, server *testkit.Server, definition string) *story {
	client := server.Client(t)
	s := &story{t: t, redis: client, server: server, queue: store.DefaultQueue, definition: definition}
	if server.IsCluster() {
		s.queue = "{" + store.DefaultQueue + "}"
	}
	var err error
	uid := func() string { s.starts++; return fmt.Sprintf("a%d", s.starts) }
	if s.dispatcher, err = dispatcher.New(dispatcher.RoomsOf(s.store(acl.Dispatcher)), dispatcher.Config{NewUID: uid}); err != nil {
		t.Fatal(err)
	}
	s.poller = check.Got(poller.New(poller.RoomsOf(s.store(acl.Poller)), poller.Config{Owner: "p1", NewUID: uid}))(t)
	return s
}

// store is the store of a daemon, which on a redis-server may do only what it has to.
func (s *story) store(role acl.Role) *store.Store {
	s.t.Helper()
	client := s.redis
	if s.server.Mini == nil && !s.server.IsCluster() {
		client = fixture.UsersOn(s.t, s.server, store.DefaultQueue).Client(s.t, role)
	}
	store, err := store.New(&redis.Clients{Read: client, Write: client, Block: client, Clustered: s.server.IsCluster()},
		store.Config{Queue: s.queue, HistoryCap: 1000, Clock: func() time.Time { return s.now }})
	must(s.t, err)
	return store
}

func (s *story) take(i int, step step) {
	s.t.Helper()
	if before := instant(step.at).Add(-time.Millisecond); before.After(s.now) && !s.now.IsZero() { // nothing may happen yet
		s.now = before
		s.stay()
	}
	s.now = instant(step.at)
	verb, extra, _ := strings.Cut(step.do, " ")
	if verb == "stay" {
		s.stay()
		return
	}
	s.act(verb, extra, step)
	no := ""
	if step.no > 0 {
		no = strconv.Itoa(step.no)
	}
	want := []any{no, text(step.deadline), text(step.refresh), step.why, step.reason}
	names := []string{"attempt_no", "deadline_at", "refresh_at", "refresh_why", "refresh_disabled_user_friendly_reason"}
	got, err := s.redis.HMGet(s.t.Context(), s.queue+":model:tbl_1", names...).Result()
	for j := range got {
		got[j] = cmp.Or(got[j], any(""))
	}
	diff := gocmp.Diff(want, got)
	stopIf(s.t, err != nil || diff != "", "step %d, %s %s: %v, -want +got\n%s", i+1, step.at, step.do, err, diff)
}

func (s *story) stay() {
	s.t.Helper()
	before := s.dump()
	s.dispatch()
	s.poll()
	diff := gocmp.Diff(before, s.dump())
	stopIf(s.t, diff != "", "at %s something happened:\n%s", s.now, diff)
}

func (s *story) dump() map[string]testkit.Value {
	s.t.Helper()
	all := s.server.Dump(s.t)
	delete(all, s.queue+":pollers")
	delete(all, s.queue+":dispatchers")
	delete(all, s.queue+":front") // what a dispatcher has seen
	delete(all, s.queue+":heard") // likewise, and what a poller has
	delete(all, s.queue+":hours")
	delete(all, s.queue+":zones") // which data daemons have
	return all
}

func (s *story) act(verb, extra string, step step) {
	s.t.Helper()
	switch verb {
	case "save":
		s.push(s.queue+"-control", `"type":"put","uid":"tbl_1"`, s.definition, extra)
		s.poll()
	case "run":
		s.push(s.queue+"-control", `"type":"run","uid":"tbl_1"`, extra)
		s.poll()
	case "succeed", "fail", "outdated":
		kind := map[string]string{"succeed": "success", "fail": "failure", "outdated": "failure"}[verb]
		s.push(s.queue+"-output", fmt.Sprintf(`"type":%q,"big_table_uid":"tbl_1","refresh_attempt_uid":"a%d"`, kind, s.starts), extra)
		s.poll()
	case "start":
		s.dispatch()
		s.work(step)
	case "lost", "give_up":
		s.dispatch()
	default:
		s.t.Fatalf("no such verb: %s", verb)
	}
}

func (s *story) dispatch() {
	s.t.Helper()
	must(s.t, check.Only(s.dispatcher.RunOnce(s.t.Context())))
}

func (s *story) poll() {
	s.t.Helper()
	must(s.t, check.Only(s.poller.RunOnce(s.t.Context())))
}

func (s *story) push(key string, fields ...string) {
	s.t.Helper()
	message := "{" + strings.TrimRight(strings.Join(fields, ","), ",") + "}"
	must(s.t, s.redis.RPush(s.t.Context(), key, message).Err())
}

// work takes the attempt from the input list, as a worker does, and reads what it says.
func (s *story) work(step step) {
	s.t.Helper()
	raw, err := s.redis.LPop(s.t.Context(), s.queue+"-input").Result()
	stopIf(s.t, err != nil, "%s: no attempt was handed out: %v", step.at, err)
	var entry map[string]any
	must(s.t, json.Unmarshal([]byte(raw), &entry))
	delete(entry, "planned_at")
	failIf(s.t, entry["due_at"] == nil || entry["for"] == nil, "%s: the worker is not told what the attempt is for: %s", step.at, raw)
	delete(entry, "due_at")
	delete(entry, "for")
	want := map[string]any{"big_table_uid": "tbl_1", "refresh_attempt_uid": fmt.Sprintf("a%d", s.starts), "attempt_no": float64(step.no),
		"deadline_at": text(step.deadline), "input_url": s.url(), "fence": float64(s.now.UnixMilli())}
	diff := gocmp.Diff(want, entry)
	stopIf(s.t, diff != "", "%s: the worker took, -want +got\n%s", step.at, diff)
}

// url is the last saved one.
func (s *story) url() string {
	s.t.Helper()
	var payload struct {
		URL string `json:"input_url"`
	}
	raw, err := s.redis.Get(s.t.Context(), s.queue+":payload:tbl_1").Result()
	stopIf(s.t, err != nil || json.Unmarshal([]byte(raw), &payload) != nil, "payload %q: %v", raw, err)
	return payload.URL
}

func instant(rfc3339 string) time.Time {
	at, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		panic(err)
	}
	return at
}

// text is an instant as Redis has it: UTC with milliseconds.
func text(rfc3339 string) string {
	if rfc3339 == "" {
		return ""
	}
	return instant(rfc3339).UTC().Format("2006-01-02T15:04:05.000Z")
}

// remains are the results of a story, written by hand.
type remains struct {
	counters map[string]string
	outbox   []string // "event at #attempt_no: reason"
}

func (s *story) compare(left remains) {
	s.t.Helper()
	counters, err := s.redis.HGetAll(s.t.Context(), s.queue+":stats").Result()
	diff := gocmp.Diff(left.counters, counters)
	failIf(s.t, err != nil || diff != "", "counters: %v, -want +got\n%s", err, diff)
	notices, err := s.redis.XRange(s.t.Context(), s.queue+":outbox", "-", "+").Result()
	var outbox []string
	for _, n := range notices {
		line := fmt.Sprintf("%s %s #%s: %v", n.Values["event"], n.Values["at"], n.Values["attempt_no"], n.Values["reason"])
		outbox = append(outbox, strings.TrimSuffix(line, ": <nil>"))
	}
	diff = gocmp.Diff(left.outbox, outbox)
	failIf(s.t, err != nil || diff != "", "outbox: %v, -want +got\n%s", err, diff)
}
