package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// begun is a model whose attempt a worker has begun, with an hour for the work and signs of life.
func begun(t *testing.T, deaths int) (*Model, time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	m := &Model{UID: "m", Payload: "{}", Policy: policy.Policy{Timeout: time.Hour, SilentAfter: time.Minute, Retries: policy.Delays{time.Minute}}}
	m.Deaths, m.AttemptNo, m.RefreshAt = deaths, 1, now
	m.State = m.Start(now, "a2").Next
	decision, outcome := m.Handle(Message{Type: MessageStarted, AttemptUID: "a2", SignsEvery: 10 * time.Second}, now.Add(time.Second))
	if outcome != Applied {
		t.Fatalf("the attempt does not begin: %s", outcome)
	}
	m.State = decision.Next
	return m, now.Add(10 * time.Minute)
}

func TestTheFirstDeathOfAWorkerHandsTheAttemptOutAgainAsIfNobodyHadBegunIt(t *testing.T) {
	m, now := begun(t, 0)
	d := m.WorkerDied(now)
	next := d.Next
	if d.Event != EventWorkerDied || d.Ended != nil || next.AttemptUID != "a2" || next.AttemptNo != 2 || next.Deaths != 1 {
		t.Fatalf("expected the same attempt, found %+v", d)
	}
	if !next.ProcessingAt.IsZero() || next.ExpectsSigns() || !next.ExpiresAt().Equal(now.Add(time.Hour)) {
		t.Errorf("expected its time and its signs to begin anew, found %+v", next)
	}
	m.State = next
	if again, outcome := m.Handle(Message{Type: MessageStarted, AttemptUID: "a2"}, now.Add(time.Minute)); outcome != Applied || again.Next.ExpectsSigns() {
		t.Errorf("expected the announcement of the next worker to count, found %s, %+v", outcome, again.Next)
	}
}

func TestTheSecondDeathDefersTheAttemptAndTheNextOneSaysSo(t *testing.T) {
	m, now := begun(t, 1)
	m.Deferrals = maxDeferrals // the bound on postponed attempts is another matter
	d := m.WorkerDied(now)
	if d.Event != EventWorkerDied || d.Ended == nil || d.Ended.Outcome != EventWorkerDied || d.countedAttempt() != 0 {
		t.Fatalf("expected the attempt to end uncounted, found %+v", d)
	}
	if next := d.Next; next.AttemptNo != 1 || next.Deaths != 2 || next.Deferrals != maxDeferrals || !next.RefreshAt.Equal(now.Add(10*time.Second)) || next.Disabled {
		t.Fatalf("expected the next start in ten seconds, found %+v", next)
	}
	m.State = d.Next
	if started := m.Start(now.Add(10*time.Second), "a3"); !strings.Contains(started.Message, `,"deaths":2,`) {
		t.Errorf("expected an entry that says deaths, found %s", started.Message)
	}
}

func TestFurtherDeathsAreFailuresUntilAWorkerSaysHowAnAttemptEnded(t *testing.T) {
	m, now := begun(t, 2)
	d := m.WorkerDied(now)
	if d.Event != EventFailure || d.Ended.ErrorType != "worker_died" || d.countedAttempt() != 2 || d.Next.Deaths != 3 {
		t.Fatalf("expected a failure that counts, found %+v", d)
	}
	m, now = begun(t, 3)
	if d := m.WorkerDied(now); d.Event != EventFailure || d.Next.Deaths != 4 {
		t.Errorf("expected the next death to be a failure too, found %+v", d)
	}
	for _, kind := range []MessageType{MessageSuccess, MessageFailure} {
		m, now = begun(t, 2)
		if d, _ := m.Handle(Message{Type: kind, AttemptUID: "a2"}, now); d.Next.Deaths != 0 {
			t.Errorf("%s: expected the deaths to be forgotten, found %d", kind, d.Next.Deaths)
		}
	}
	for _, kind := range []MessageType{MessagePostponed, MessageInterrupted} {
		m, now = begun(t, 2)
		if d, _ := m.Handle(Message{Type: kind, AttemptUID: "a2"}, now); d.Next.Deaths != 2 {
			t.Errorf("%s: expected the deaths to be kept, found %d", kind, d.Next.Deaths)
		}
	}
}
