package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/care/acl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
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

// story runs steps on one queue with one model.
type story struct {
	t          *testing.T
	redis      redis.UniversalClient
	server     *testkit.Server
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
	now        time.Time
	definition string // JSON fields of a save

	// What every story implies without saying it.
	starts  int
	seen    map[string]string // fields that the last step has left
	ended   int               // entries in the history
	journal int               // entries in the journal
	told    map[string]string // hash of the model as the journal tells it
}

// tell runs a story on both servers and compares what is left of it.
func tell(t *testing.T, definition string, steps []step, left remains) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		s := open(t, server, definition)
		for i, step := range steps {
			s.take(i, step)
		}
		s.compare(left)
	})
}

func open(t *testing.T, server *testkit.Server, definition string) *story {
	client := server.Client(t)
	s := &story{t: t, redis: client, server: server, definition: definition, seen: map[string]string{}, told: map[string]string{}}
	var err error
	if s.dispatcher, err = dispatcher.New(s.store(acl.Dispatcher), dispatcher.Config{NewUID: func() string { s.starts++; return fmt.Sprintf("a%d", s.starts) }}); err != nil {
		t.Fatal(err)
	}
	if s.poller, err = poller.New(s.store(acl.Poller), poller.Config{Owner: "p1"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// store is that of a daemon, which on a redis-server may do only what it has to.
func (s *story) store(role acl.Role) *store.Store {
	s.t.Helper()
	client := s.redis
	if s.server.Mini == nil {
		client = fixture.UsersOn(s.t, s.server, store.DefaultQueue).Client(s.t, role)
	}
	store, err := store.New(&store.Clients{Read: client, Write: client, Block: client},
		store.Config{HistoryCap: 1000, Clock: func() time.Time { return s.now }})
	if err != nil {
		s.t.Fatal(err)
	}
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
	started := s.seen["started_at"]
	s.seen = s.fields(verb, step)
	if diff := cmp.Diff(s.picture(step), s.real()); diff != "" {
		s.t.Fatalf("step %d, %s %s: -want +got\n%s", i+1, step.at, step.do, diff)
	}
	s.checkHistory(verb, started, step)
	s.checkJournal(verb, step)
}

func (s *story) stay() {
	s.t.Helper()
	before := s.dump()
	s.dispatch()
	s.poll()
	if diff := cmp.Diff(before, s.dump()); diff != "" {
		s.t.Fatalf("at %s something happened:\n%s", s.now, diff)
	}
}

// dump is everything but signs of life.
func (s *story) dump() map[string]testkit.Value {
	s.t.Helper()
	all := s.server.Dump(s.t)
	delete(all, "bigtables:pollers")
	delete(all, "bigtables:dispatchers")
	delete(all, "bigtables:front") // what a dispatcher has seen
	return all
}

func (s *story) act(verb, extra string, step step) {
	s.t.Helper()
	switch verb {
	case "save":
		s.push("bigtables-control", `"type":"put","uid":"tbl_1"`, s.definition, extra)
		s.poll()
	case "run":
		s.push("bigtables-control", `"type":"run","uid":"tbl_1"`, extra)
		s.poll()
	case "succeed", "fail", "outdated":
		kind := map[string]string{"succeed": "success", "fail": "failure", "outdated": "failure"}[verb]
		s.push("bigtables-output", fmt.Sprintf(`"type":%q,"big_table_uid":"tbl_1","refresh_attempt_uid":"a%d"`, kind, s.starts), extra)
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
	if _, err := s.dispatcher.RunOnce(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) poll() {
	s.t.Helper()
	if _, err := s.poller.RunOnce(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) push(key string, fields ...string) {
	s.t.Helper()
	message := "{" + strings.TrimRight(strings.Join(fields, ","), ",") + "}"
	if err := s.redis.RPush(s.t.Context(), key, message).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// work takes the attempt from the input list, as a worker does, and reads what it says.
func (s *story) work(step step) {
	s.t.Helper()
	raw, err := s.redis.LPop(s.t.Context(), "bigtables-input").Result()
	if err != nil {
		s.t.Fatalf("%s: no attempt was handed out: %v", step.at, err)
	}
	var entry map[string]any
	if err := json.Unmarshal([]byte(raw), &entry); err != nil {
		s.t.Fatal(err)
	}
	delete(entry, "planned_at")
	want := map[string]any{"big_table_uid": "tbl_1", "refresh_attempt_uid": fmt.Sprintf("a%d", s.starts), "attempt_no": float64(step.no),
		"deadline_at": text(step.deadline), "input_url": s.url()}
	if diff := cmp.Diff(want, entry); diff != "" {
		s.t.Fatalf("%s: the worker took, -want +got\n%s", step.at, diff)
	}
}

// url is what was saved last.
func (s *story) url() string {
	s.t.Helper()
	var payload struct {
		URL string `json:"input_url"`
	}
	raw, err := s.redis.Get(s.t.Context(), "bigtables:payload:tbl_1").Result()
	if err != nil || json.Unmarshal([]byte(raw), &payload) != nil {
		s.t.Fatalf("payload %q: %v", raw, err)
	}
	return payload.URL
}

// fields is the hash of the model after the step, without its definition: the hand-written columns, and what the verb implies.
func (s *story) fields(verb string, step step) map[string]string {
	is := map[string]string{"attempt_no": strconv.Itoa(step.no), "deadline_at": text(step.deadline), "refresh_at": text(step.refresh),
		"refresh_why": step.why, "refresh_disabled_user_friendly_reason": step.reason}
	for _, kept := range []string{"last_success_at", "failing_since", "final_failure_at", "last_attempt_uid", "trying_since",
		"total_retries", "successful_retries", "retried_cycles"} {
		is[kept] = s.seen[kept]
	}
	s.fence(is, verb, step)
	s.window(is, verb, step)
	s.count(is, verb)
	is["refresh_for"] = s.cause(step)
	switch {
	case verb == "succeed":
		is["last_success_at"], is["failing_since"], is["final_failure_at"] = text(step.at), "", ""
	case (verb == "fail" || verb == "lost") && is["failing_since"] == "":
		is["failing_since"] = text(step.at)
	}
	if is["failing_since"] != "" {
		is["error"] = s.signature(verb, step)
	}
	if step.reason != "" {
		is["refresh_disabled_until_update"], is["refresh_disabled_by"] = "1", "policy"
		is["refresh_disabled_at"], is["final_failure_at"] = text(step.at), text(step.at)
	}
	maps.DeleteFunc(is, func(_, value string) bool { return value == "" || value == "0" })
	return is
}

// signature is the id of that by which the model fails.
func (s *story) signature(verb string, step step) string {
	said := struct {
		Reason    string `json:"reason"`
		ErrorType string `json:"error_type"`
	}{"timeout", "timeout"}
	switch _, extra, _ := strings.Cut(step.do, " "); {
	case verb == "fail":
		said.Reason, said.ErrorType = "", ""
		if err := json.Unmarshal([]byte("{"+extra+"}"), &said); err != nil {
			s.t.Fatal(err)
		}
	case verb != "lost":
		return s.seen["error"]
	}
	return model.FingerprintOf("tbl_1", said.ErrorType, said.Reason).ID()
}

// fence fills in what belongs to the running attempt, or remembers that it has ended.
func (s *story) fence(is map[string]string, verb string, step step) {
	switch {
	case verb == "start":
		is["attempt_uid"], is["started_at"] = fmt.Sprintf("a%d", s.starts), text(step.at)
	case step.deadline != "": // a save during the attempt
		is["attempt_uid"], is["started_at"], is["again"] = s.seen["attempt_uid"], s.seen["started_at"], "1"
		is["outdated"] = "1" // the worker has it
	case s.seen["attempt_uid"] != "":
		is["last_attempt_uid"] = s.seen["attempt_uid"]
	}
}

// cause is why the next start was set; while an attempt runs, why that one was.
func (s *story) cause(step step) string {
	switch why := step.why; {
	case step.deadline != "":
		return s.seen["refresh_for"]
	case strings.HasPrefix(why, "saved: refresh now") && s.definition == banner && s.seen["failing_since"] == "":
		return "" // a one-shot starts with each save
	case why == "run by hand":
		return "run"
	case strings.HasPrefix(why, "saved"):
		return "hand"
	case strings.HasPrefix(why, "retry") && !strings.Contains(why, "planned first"), strings.HasPrefix(why, "held"):
		return "retry"
	case strings.HasPrefix(why, "gives up"):
		return "give_up"
	default:
		return ""
	}
}

// window fills in from when the give-up window counts where that is not the last success: the first start, or a later save.
func (s *story) window(is map[string]string, verb string, step step) {
	counting := s.seen["trying_since"] != "" || s.seen["last_success_at"] != ""
	switch {
	case verb == "succeed":
		is["trying_since"] = ""
	case verb == "save" && counting, verb == "start" && !counting:
		is["trying_since"] = text(step.at)
	}
}

// count adds what an attempt that has ended means for the retries in the life of the model.
func (s *story) count(is map[string]string, verb string) {
	_, ends := outcomes[verb]
	no, _ := strconv.Atoi(s.seen["attempt_no"])
	if verb == "outdated" {
		return
	}
	for counter, counts := range map[string]bool{"total_retries": no > 1, "successful_retries": no > 1 && verb == "succeed", "retried_cycles": no == 2} {
		if ends && counts {
			n, _ := strconv.Atoi(is[counter])
			is[counter] = strconv.Itoa(n + 1)
		}
	}
}

// picture is what a step must leave: the hash, the three sets, and the lists that workers and applications see.
type picture struct {
	Hash                 map[string]string
	Due, Urgent, Running map[string]float64
	Leftover             int // entries in input, output, control, claimed and rejected
}

func (s *story) picture(step step) picture {
	p := picture{Hash: s.seen, Due: map[string]float64{}, Urgent: map[string]float64{}, Running: map[string]float64{}}
	switch {
	case step.deadline != "":
		p.Running["tbl_1"] = float64(instant(step.deadline).UnixMilli())
	case step.refresh != "" && s.seen["refresh_for"] == "hand":
		p.Urgent["tbl_1"] = float64(instant(step.refresh).UnixMilli())
	case step.refresh != "" && s.seen["refresh_for"] == "run":
		p.Urgent["tbl_1"] = float64(instant(step.refresh).AddDate(0, 0, -36500).UnixMilli())
	case step.refresh != "":
		p.Due["tbl_1"] = float64(instant(step.refresh).UnixMilli())
	}
	return p
}

func (s *story) real() picture {
	s.t.Helper()
	all := s.dump()
	p := picture{Hash: map[string]string{}, Due: map[string]float64{}, Urgent: map[string]float64{}, Running: map[string]float64{},
		Leftover: entries(all, "bigtables-input", "bigtables-output", "bigtables-control", "bigtables:claimed:p1", "bigtables:rejected")}
	if hash, found := all["bigtables:model:tbl_1"].Data.(map[string]string); found {
		p.Hash = hash
	}
	for key, into := range map[string]*map[string]float64{"bigtables:due": &p.Due, "bigtables:urgent": &p.Urgent, "bigtables:running": &p.Running} {
		if scores, found := all[key].Data.(map[string]float64); found {
			*into = scores
		}
	}
	for _, definition := range []string{"rev", "rrule", "timezone", "dtstart", "policy", "entry_planned_at", "ticket"} {
		delete(p.Hash, definition)
	}
	return p
}

// entries counts what stands in lists.
func entries(all map[string]testkit.Value, lists ...string) (n int) {
	for _, key := range lists {
		list, _ := all[key].Data.([]string)
		n += len(list)
	}
	return n
}

func instant(rfc3339 string) time.Time {
	at, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		panic(err)
	}
	return at
}

// text is an instant as it stands in Redis: UTC with milliseconds.
func text(rfc3339 string) string {
	if rfc3339 == "" {
		return ""
	}
	return instant(rfc3339).UTC().Format("2006-01-02T15:04:05.000Z")
}
