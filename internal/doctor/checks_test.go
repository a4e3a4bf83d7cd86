package doctor

import (
	"strings"
	"testing"
)

func TestOnlyTheFirstFindingsOfACodeAreReported(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		for _, uid := range []string{"a", "b", "c", "d", "e"} {
			q.ok(q.Redis.Set(t.Context(), q.Store.Keys.Payload(uid), "{}", 0).Err())
		}
		report := q.check(Options{Limit: 2})
		if len(report.Findings) != 2 || report.Counts["payload-orphan"].Found != 5 || report.Findings[0].Code != report.Findings[1].Code {
			t.Errorf("expected 2 of 5 reported, found %v\n%s", report.Counts, report)
		}
	})
}

func TestAllPartsOfAnOrphanAreReportedOnce(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		k := q.Store.Keys
		q.ok(q.Redis.Set(t.Context(), k.Payload("x"), "{}", 0).Err())
		q.ok(q.Redis.RPush(t.Context(), k.History("x"), "{}").Err())
		q.ok(q.Redis.Do(t.Context(), "ZADD", k.Due(), 1e13, "x").Err())
		q.ok(q.Redis.Do(t.Context(), "ZADD", k.Running(), 1e13, "x").Err())
		for _, repair := range []bool{false, true} {
			report := q.check(Options{Repair: repair})
			if len(report.Findings) != 4 || report.Total(Error) != map[bool]int{false: 4, true: 0}[repair] {
				t.Errorf("expected each of four once, found\n%s", report)
			}
		}
	})
}

func TestNothingIsRepairedWhileAKeyOfTheQueueHasTheWrongType(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		q.ok(q.Redis.Set(t.Context(), q.Store.Keys.Stats(), "text", 0).Err())
		q.ok(q.Redis.Set(t.Context(), q.Store.Keys.Payload("x"), "{}", 0).Err())
		report := q.check(Options{Repair: true})
		if report.Repaired() > 0 || report.Counts["key-type"].Found != 1 || !strings.Contains(report.String(), "left: a key of the queue has the wrong type") {
			t.Errorf("expected it left and said, found\n%s", report)
		}
	})
}

func TestEveryQueueKeyOfTheWrongTypeIsReported(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		k := q.Store.Keys
		all := []string{k.Input(), k.Output(), k.Control(), k.Due(), k.Running(), k.Policies(), k.Dispatchers(), k.Pollers(), k.Workers(), k.Journal(), k.Outbox(), k.Rejected(), k.Stats(), k.QueueCircuit(), k.Wake()}
		q.prepare()
		for _, key := range all {
			q.ok(q.Redis.Del(t.Context(), key).Err())
			q.ok(q.Redis.Set(t.Context(), key, "text", 0).Err())
		}
		if report := q.check(Options{Repair: true}); report.Counts["key-type"].Found != len(all) {
			t.Errorf("expected %d keys, found\n%s", len(all), report)
		}
	})
}
