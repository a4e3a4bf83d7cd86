package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
)

var outcomes = map[string]string{"succeed": "success", "fail": "failure", "lost": "timeout", "outdated": "outdated"}

// checkHistory holds the newest record against the step that ended the attempt.
func (s *story) checkHistory(verb, started string, step step) {
	s.t.Helper()
	outcome, ends := outcomes[verb]
	records, err := s.redis.LRange(s.t.Context(), "bigtables:history:tbl_1", 0, -1).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	if ends {
		s.ended++
	}
	if len(records) != s.ended {
		s.t.Fatalf("%s %s: %d records in the history, want %d", step.at, step.do, len(records), s.ended)
	}
	if !ends {
		return
	}
	got, err := model.ParseAttempt(records[0])
	if err != nil {
		s.t.Fatal(err)
	}
	want := model.Attempt{
		AttemptUID: fmt.Sprintf("a%d", s.starts), Outcome: model.Event(outcome), Final: step.reason != "",
		StartedAt: instant(started).UTC(), EndedAt: instant(step.at).UTC(), Why: step.why,
	}
	if step.refresh != "" {
		want.RefreshAt = instant(step.refresh).UTC()
	}
	told := model.Attempt{
		AttemptUID: got.AttemptUID, Outcome: got.Outcome, Final: got.Final,
		StartedAt: got.StartedAt, EndedAt: got.EndedAt, Why: got.Why, RefreshAt: got.RefreshAt,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		s.t.Fatalf("%s %s: history, -want +got\n%s", step.at, step.do, diff)
	}
}

// checkJournal: each step is one transition and leaves one entry.
func (s *story) checkJournal(verb string, step step) {
	s.t.Helper()
	s.journal++
	const journal = "bigtables:journal"
	entries, err := s.redis.XRange(s.t.Context(), journal, "-", "+").Result()
	if err != nil || len(entries) != 1 {
		s.t.Fatalf("%s %s: %d new entries in the journal, want 1 (%v)", step.at, step.do, len(entries), err)
	}
	if err := s.redis.XTrimMaxLen(s.t.Context(), journal, 0).Err(); err != nil { // all of it would be compared before each step
		s.t.Fatal(err)
	}
	entry := entries[0].Values
	got := map[string]any{"uid": entry["uid"], "at": entry["at"], "event": entry["event"]}
	want := map[string]any{"uid": "tbl_1", "at": text(step.at), "event": event(verb, s.journal)}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("%s %s: journal, -want +got\n%s", step.at, step.do, diff)
	}
	s.rebuild(entry)
	hash, err := s.redis.HGetAll(s.t.Context(), "bigtables:model:tbl_1").Result()
	if diff := cmp.Diff(hash, s.told); err != nil || diff != "" {
		s.t.Fatalf("%s %s: the model as the journal tells it, %v, -is +told\n%s", step.at, step.do, err, diff)
	}
}

// rebuild follows the journal, as anybody can who wants to know what a model was.
func (s *story) rebuild(entry map[string]any) {
	beside := []string{"uid", "at", "event", "ended_attempt_no", "ended_attempt_uid", "reason", "error_type", "changed", "policy_error", "held", "final"}
	for name, value := range entry {
		switch text := fmt.Sprint(value); {
		case slices.Contains(beside, name):
		case text == "":
			delete(s.told, name)
		default:
			s.told[name] = text
		}
	}
}

func event(verb string, entry int) string {
	if verb == "save" && entry == 1 {
		return "create"
	} else if verb == "save" {
		return "update"
	}
	if outcome, ends := outcomes[verb]; ends {
		return outcome
	}
	return verb
}

// remains is what a story leaves behind, written by hand.
type remains struct {
	counters map[string]string
	outbox   []string // "event at #attempt_no: reason"
}

func (s *story) compare(left remains) {
	s.t.Helper()
	counters, err := s.redis.HGetAll(s.t.Context(), "bigtables:stats").Result()
	if diff := cmp.Diff(left.counters, counters); err != nil || diff != "" {
		s.t.Errorf("counters: %v, -want +got\n%s", err, diff)
	}
	notices, err := s.redis.XRange(s.t.Context(), "bigtables:outbox", "-", "+").Result()
	var outbox []string
	for _, n := range notices {
		line := fmt.Sprintf("%s %s #%s: %v", n.Values["event"], n.Values["at"], n.Values["attempt_no"], n.Values["reason"])
		outbox = append(outbox, strings.TrimSuffix(line, ": <nil>"))
	}
	if diff := cmp.Diff(left.outbox, outbox); err != nil || diff != "" {
		s.t.Errorf("outbox: %v, -want +got\n%s", err, diff)
	}
}
