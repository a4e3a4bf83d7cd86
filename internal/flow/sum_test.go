package flow_test

import (
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// parted is a queue of two parts on a fake server. The second part holds twice as much as the first of all that is added up.
func parted(t *testing.T) (flow.Queue, *store.Queue) {
	t.Helper()
	b := fixture.NewBench(t, testkit.Miniredis(t))
	queue := fixture.Parted(t, b.Clients)
	steered(t, queue)
	for i, part := range queue.Parts {
		for n := range 2*i + 1 {
			waits := goredis.Z{Score: six, Member: fmt.Sprint("w", n)}
			for _, gate := range []string{"hold:h1", "limit:host=h", "circuit:host=h"} {
				must(t, b.Redis.ZAdd(t.Context(), part.Keys.ParkedBy(gate), waits).Err())
			}
			must(t, b.Redis.ZAdd(t.Context(), part.Keys.Limit("host=h"), waits).Err())
		}
	}
	return flow.OfQueue(queue), queue
}

func TestHoldsLimitsAndCircuitsAreAddedUpOverAllParts(t *testing.T) {
	q, queue := parted(t)
	ctx, client := t.Context(), queue.Parts[0].Clients.Write
	holds := check.Got(q.Holds(ctx))(t)
	stopIf(t, len(holds) != 1, "want one hold, got %+v", holds)
	expectEqual(t, "hold", fmt.Sprint("h1 they move ", 2+4, false), fmt.Sprint(holds[0].ID, " ", holds[0].Reason, " ", holds[0].Parked, holds[0].Released))

	closed := fixture.SixOClock.Add(2 * time.Hour)
	slots := model.Slots{Free: fixture.SixOClock.Add(time.Minute), Closed: closed, By: "m2 (http_429)"}
	must(t, client.Set(ctx, queue.Parts[1].Keys.Rate("host=h"), slots.String(), 0).Err())
	uses := check.Got(q.LimitUses(ctx))(t)
	want := []flow.LimitUse{{
		Key: "host=h", Set: true, Max: 4, Running: 2 + 4, Parked: 2 + 4, Next: slots.Free, ClosedUntil: closed, ClosedBy: "m2 (http_429)",
	}}
	expectEqual(t, "limits", want, uses)
	expectEqual(t, "limits by name", want, check.Got(q.LimitUses(ctx, "host=h"))(t))

	must(t, client.HSet(ctx, queue.Parts[0].Keys.Circuit("host=h"), "recent", "10", "opened", 2, "opened_at", "2026-11-21T06:00:00.000Z", "by", "eve").Err())
	must(t, client.HSet(ctx, queue.Parts[1].Keys.Circuit("host=h"), "recent", "111", "opened", 3, "opened_at", "2026-11-21T05:00:00.000Z", "by", "bob").Err())
	must(t, client.HSet(ctx, queue.Parts[1].Keys.Circuit("host=a"), "recent", "0").Err())
	circuits := check.Got(q.Circuits(ctx))(t)
	var texts []string
	for _, c := range circuits {
		texts = append(texts, fmt.Sprint(c.Key, " ", c.Open(), " ", c.OpenParts, " ", c.Recent, " ", c.Opened, " ", c.Parked, " ", c.By, " ", model.FormatTime(c.OpenedAt)))
	}
	expectEqual(t, "circuits", list{
		"host=h true 2 10111 5 6 bob 2026-11-21T05:00:00.000Z", "queue true 2  2 0 ann " + model.FormatTime(circuits[1].OpenedAt), "host=a false 0 0 0 0  ",
	}, texts)
	expectEqual(t, "open circuits", 2, len(check.Got(q.OpenCircuits(ctx))(t)))

	for i, part := range queue.Parts {
		began := model.QueueCircuitSucceeded + "1"
		must(t, client.HSet(ctx, part.Keys.Stats, began, 2*i+1, model.QueueCircuitFailed+"1", 2*i+5).Err())
	}
	status := check.Got(q.QueueCircuit(ctx))(t)
	expectEqual(t, "circuit of the queue", [4]int64{1 + 3, 5 + 7, 1, 4}, [4]int64{status.Successes, status.Failures, status.Opened, int64(status.Min)})
}

func TestABulkIsAddedUpOverAllPartsAndOverWhereItIsOverInAll(t *testing.T) {
	q, queue := parted(t)
	ctx := t.Context()
	for i, part := range queue.Parts {
		b, _, err := flow.Of(part).ReadBulk(ctx, "b1")
		must(t, err)
		b.Place, b.Seen = "x/7", int64(10*i+10)
		for range i + 1 {
			b.Count(model.Applied)
			b.Count(model.Busy)
			b.Count(model.Already)
		}
		b.Count(model.Busy)
		must(t, only(flow.Of(part).MoveBulk(ctx, &b, fixture.SixOClock)))
	}
	find := func() flow.Bulk {
		sum, found, err := q.FindBulk(ctx, "b1")
		stopIf(t, err != nil || !found, "found %t, %v", found, err)
		return sum
	}
	sum := find()
	expectEqual(t, "sums", [5]int64{10 + 20, 2 + 3 + 3 + 3, 1 + 2, 2 + 3, 1 + 2}, [5]int64{sum.Seen, sum.Picked, sum.Done, sum.Refusals(), sum.Others[model.Already]})
	first, _, _ := flow.Of(queue.Parts[0]).ReadBulk(ctx, "b1")
	failIf(t, !sum.Since.Equal(first.Since), "want it as old as in the part where it began first, got %v", sum.Since)

	must(t, only(flow.Of(queue.Parts[1]).CancelBulk(ctx, "b1")))
	expectEqual(t, "cancelled in one part", flow.BulkRunning, new(find()).State())
	cancelled, err := q.CancelBulk(ctx, "b1")
	failIf(t, err != nil || !cancelled, "want it cancelled, got %t, %v", cancelled, err)
	sum = find()
	last, _, _ := flow.Of(queue.Parts[0]).ReadBulk(ctx, "b1")
	failIf(t, sum.State() != flow.BulkCancelled || !sum.EndedAt.Equal(last.EndedAt), "want it over when the last part was, got %+v", sum)
	var ids list
	for _, b := range check.Got(q.Bulks(ctx))(t) {
		ids = append(ids, b.ID+" "+string(b.State()))
	}
	expectEqual(t, "bulks", list{"b1 cancelled", store.ZonesID + "2020a running", "replan-p1 running"}, ids)
	cancelled, err = q.CancelBulk(ctx, "b1")
	failIf(t, err != nil || cancelled, "want nothing to cancel, got %t, %v", cancelled, err)
}

func TestABulkHasItsShareOfTheRateInEachPart(t *testing.T) {
	q, queue := parted(t)
	rate := check.Got(policy.ReadRate("10/s"))(t)
	id := check.Got(q.BeginNewBulk(t.Context(), model.Bulk{Action: model.BulkRun, Rate: rate}))(t)
	for _, part := range queue.Parts {
		b, found, err := flow.Of(part).ReadBulk(t.Context(), id)
		failIf(t, err != nil || !found || b.Rate.String() != "10/2s", "want half of the rate in each part, got %+v, %v", b.Rate, err)
	}
}
