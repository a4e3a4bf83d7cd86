package flow

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

func TestABulkIsSummedUpInWhicheverOrderThePartsCome(t *testing.T) {
	part := func(n int64, since, ended time.Duration, cancelled bool, problem string) Bulk {
		b := Bulk{BulkWish: store.BulkWish{ID: "b"}, Seen: n, Picked: 2 * n, Done: 3 * n, Cancelled: cancelled, Problem: problem}
		b.Size, b.Since = 4*n, noon.Add(since)
		if ended > 0 {
			b.EndedAt = noon.Add(ended)
		}
		b.Others = map[model.Outcome]int64{model.Busy: n}
		return b
	}
	text := func(b Bulk) string {
		return fmt.Sprint(b.Seen, " ", b.Picked, " ", b.Done, " ", b.Size, " ", b.Refusals(), " ", b.Since.Sub(noon), " ", max(0, b.EndedAt.Sub(noon)), " ", b.State())
	}
	for name, test := range map[string]struct {
		first, second Bulk
		want          string
	}{
		"both run":              {part(1, 1, 0, false, ""), part(10, 2, 0, false, ""), "11 22 33 44 11 1ns 0s running"},
		"one is over":           {part(1, 1, 5, false, ""), part(10, 2, 0, false, ""), "11 22 33 44 11 1ns 0s running"},
		"both are over":         {part(1, 1, 5, false, ""), part(10, 2, 6, false, ""), "11 22 33 44 11 1ns 6ns done"},
		"one was cancelled":     {part(1, 1, 5, true, ""), part(10, 2, 6, false, ""), "11 22 33 44 11 1ns 6ns cancelled"},
		"one cannot be read":    {part(1, 1, 5, false, ""), part(10, 2, 6, false, "x"), "11 22 33 44 11 1ns 6ns unreadable"},
		"one was cancelled yet": {part(1, 1, 0, true, ""), part(10, 2, 6, false, ""), "11 22 33 44 11 1ns 0s running"},
	} {
		for _, order := range [][2]Bulk{{test.first, test.second}, {test.second, test.first}} {
			var sum Bulk
			others := maps.Clone(order[0].Others)
			sum.add(&order[0])
			sum.add(&order[1])
			if got := text(sum); got != test.want {
				t.Errorf("%s: got %s, want %s", name, got, test.want)
			}
			if !maps.Equal(order[0].Others, others) {
				t.Errorf("%s: the sum changed its first part", name)
			}
		}
	}
}

func TestABulkThatCannotBeReadNamesItsProblem(t *testing.T) {
	whole := map[string]string{"action": "run", "since": "2026-11-21T06:00:00Z", "ended": "done", "ended_at": "2026-11-21T07:00:00Z", "unchanged": "2", "refused:busy": "3", "step": "4"}
	b := readBulk("b", whole)
	if b.Problem != "" || b.State() != BulkDone || b.Refusals() != 3 || b.Others[model.Unchanged] != 2 || len(b.Others) != 2 || b.Place != store.WalkBegins {
		t.Errorf("got %+v", b)
	}
	for field, value := range map[string]string{"action": "polish", "since": "soon", "next_at": "soon", "ended_at": "soon", "rate": "fast", "selector": "status=sad"} {
		hash := maps.Clone(whole)
		hash[field] = value
		if b := readBulk("b", hash); b.Problem == "" || b.State() != BulkUnreadable || b.State().Over() {
			t.Errorf("%s %s: got %s, %q", field, value, b.State(), b.Problem)
		}
	}
	newer := map[string]string{"action": "zones", "since": "2026-11-21T06:00:00Z"}
	for release, problem := range map[string]bool{"2020a": false, "9999z": true} {
		if b := readBulk(store.ZonesID+release, newer); (b.Problem != "") != problem {
			t.Errorf("zone data of %s: %q", release, b.Problem)
		}
	}
	if !BulkDone.Over() || !BulkCancelled.Over() || BulkRunning.Over() {
		t.Error("what is done or cancelled is over, and nothing else")
	}
}
