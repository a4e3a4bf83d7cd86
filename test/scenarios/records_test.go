package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/google/go-cmp/cmp"
)

var outcomes = map[string]string{"succeed": "success", "fail": "failure", "lost": "timeout"}

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
	want := map[string]any{"attempt_uid": fmt.Sprintf("a%d", s.starts), "outcome": outcome, "started_at": started, "ended_at": text(step.at), "refresh_why": step.why, "refresh_at": any(nil)}
	if step.refresh != "" {
		want["refresh_at"] = text(step.refresh)
	}
	if step.reason != "" {
		want["final"] = true
	}
	s.hold(records[0], want, step)
}

// hold compares those fields of a JSON record that are wanted.
func (s *story) hold(record string, want map[string]any, step step) {
	s.t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(record), &got); err != nil {
		s.t.Fatal(err)
	}
	maps.DeleteFunc(got, func(name string, _ any) bool { _, wanted := want[name]; return !wanted })
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("%s %s: history, -want +got\n%s", step.at, step.do, diff)
	}
}

// checkJournal: each step is one transition and leaves one entry.
func (s *story) checkJournal(verb string, step step) {
	s.t.Helper()
	s.journal++
	entries, err := s.redis.XRange(s.t.Context(), "bigtables:journal", "-", "+").Result()
	if err != nil || len(entries) != 1 {
		s.t.Fatalf("%s %s: %d new entries in the journal, want 1 (%v)", step.at, step.do, len(entries), err)
	}
	if err := s.redis.XTrimMaxLen(s.t.Context(), "bigtables:journal", 0).Err(); err != nil { // all of it would be compared before each step
		s.t.Fatal(err)
	}
	want := map[string]any{"uid": "tbl_1", "at": text(step.at), "event": event(verb, s.journal), "refresh_why": step.why}
	for name, value := range map[string]string{"refresh_at": text(step.refresh), "deadline_at": text(step.deadline), "disabled_reason": step.reason} {
		if value != "" {
			want[name] = value
		}
	}
	got := entries[0].Values
	for _, other := range []string{"attempt_uid", "attempt_no", "reason", "error_type", "final"} {
		delete(got, other)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("%s %s: journal, -want +got\n%s", step.at, step.do, diff)
	}
}

func event(verb string, entry int) string {
	switch verb {
	case "save":
		if entry == 1 {
			return "create"
		}
		return "update"
	case "queue":
		return "start"
	case "withdraw":
		return "withdrawn"
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
