package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

// rejections is a queue in which messages are rejected.
type rejections struct {
	*console
	queue *fixture.Queue
}

func rejecting(t *testing.T, server *testkit.Server) *rejections {
	return &rejections{at(t, server), fixture.Live(t, server)}
}

// poll lets a poller handle what was said.
func (r *rejections) poll() {
	r.t.Helper()
	p, err := poller.New(r.queue.Store, poller.Config{Owner: "p1"})
	if err == nil {
		_, err = p.RunOnce(r.t.Context())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// ids lists the rejected messages.
func (r *rejections) ids(args ...string) (ids []string) {
	r.t.Helper()
	for _, object := range r.objects(r.do(append([]string{"rejected", "ls", "-o", "json"}, args...)...)) {
		ids = append(ids, fmt.Sprint(object["id"]))
	}
	return ids
}

func TestARejectedMessageIsListedAndHandledAgainOnceItsReasonIsMended(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r := rejecting(t, server)
		r.queue.Command(`{"type":"run","uid":"late"}`)
		r.queue.Say("gar\x1b[2Jbage", fixture.Result("dance", "late", "a1"))
		r.poll()
		expectContains(t, r.do("rejected", "ls"), "ID  ", "control", "late", "uid: expected a stored model", "gar [2Jbage")
		all, about := r.ids(), r.ids("--uid", "late")
		if len(all) != 3 || len(about) != 2 {
			t.Fatalf("expected three messages, two of them about late, found %v and %v", all, about)
		}
		r.in = "uid: late\nrrule: FREQ=YEARLY\n"
		r.do("model", "put", "-")
		expectContains(t, r.do("rejected", "requeue", about[1]), "1 message\n") // results stand before commands
		r.poll()
		if got := r.object("model", "get", "late")["refresh_why"]; got != "run by hand" {
			t.Errorf("expected the run that was rejected, found %v", got)
		}
		if left := r.ids(); len(left) != 2 {
			t.Errorf("expected two messages that are still rejected, found %v", left)
		}
		expectContains(t, r.fail(exitFailed, "rejected", "requeue", about[1]), about[1]+": expected the ID of a rejected message, found none of that ID")
		expectContains(t, r.do("rejected", "drop", "--all"), "2 messages\n")
		if left := r.ids(); len(left) != 0 {
			t.Errorf("expected none left, found %v", left)
		}
	})
}

func TestAModelTellsOfTheNewestRejectedMessageAboutIt(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r := rejecting(t, server)
		r.in = "uid: a\nrrule: FREQ=YEARLY\n---\nuid: b\nrrule: FREQ=YEARLY\n"
		r.do("model", "put", "-")
		r.queue.Say(fixture.Result("jump", "a", "a1"))
		r.poll()
		r.queue.Say(fixture.Result("dance", "a", "a1"))
		r.poll()
		const told = `type: expected success, failure, user_friendly_status, started, postponed, interrupted, found "dance"`
		expectContains(t, r.do("model", "get", "a"), "rejected   ", "a message of a worker was rejected at ", told)
		expectContains(t, r.do("explain", "a"), "a message of a worker was rejected at ", told)
		rejected, _ := r.object("model", "get", "a")["rejected"].(map[string]any)
		if diff := cmp.Diff([]any{r.ids()[1], "output", told}, []any{rejected["id"], rejected["source"], rejected["reason"]}); diff != "" {
			t.Error(diff)
		}
		if other := r.do("explain", "b"); strings.Contains(other, "rejected") {
			t.Errorf("expected nothing about another model, found %s", other)
		}
	})
}

func TestAFieldThatWasIgnoredIsExplainedAndStandsInTheHistory(t *testing.T) {
	s := failing(t)
	s.dispatch("08:00:00")
	s.answer("08:10:00", "success", "a", `"changed":"true"`)
	expectContains(t, s.do("explain", "a"), "at 09:10; ignored of what the worker said, as it cannot be used: changed; next: 16:00 (planned)\n")
	history := s.objects(s.do("model", "history", "a", "-o", "json"))
	if diff := cmp.Diff([]any{"changed"}, history[0]["ignored"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{}, history[1]["ignored"]); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeRequeuedIsToldAndTheRestGoes(t *testing.T) {
	r := rejecting(t, testkit.Miniredis(t))
	r.queue.Say(strings.Repeat("x", 20<<10), "garbage")
	r.poll()
	expectContains(t, r.fail(exitFailed, "rejected", "requeue", "--all"), "raw: expected all 20480 bytes of the message, found only its beginning")
	if left, back := r.ids(), r.queue.List(r.queue.Store.Keys.Output); len(left) != 1 || len(back) != 1 || back[0] != "garbage" {
		t.Errorf("expected one left and one back, found %v and %q", left, back)
	}
	expectContains(t, r.fail(exitUsage, "rejected", "requeue"), "expected the ID of a rejected message, or several, or --all, found neither")
	expectContains(t, r.fail(exitUsage, "rejected", "drop", "--all", "x"), "found both")
	expectContains(t, r.do("__complete", "rejected", "drop", ""), r.ids()[0]+"\t")
}
