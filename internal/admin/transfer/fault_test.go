package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// eachCall repeats something: each time a later call fails, until there are fewer calls. It must report what it could not do.
func (q *queue) eachCall(step, least int, do func() error, after func(n int)) {
	q.t.Helper()
	fault := new(testkit.Fault)
	q.client.AddHook(fault)
	for n := 1; ; n += step {
		fault.Arm(n)
		err := do()
		struck := fault.Struck()
		fault.Arm(0)
		stopIf(q.t, struck != errors.Is(err, testkit.ErrFault) || !struck && err != nil, "call %d: failed: %v, told: %v", n, struck, err)
		after(n)
		if !struck {
			failIf(q.t, n <= least, "expected more than %d calls, found %d", least, n-1)
			return
		}
	}
}

func TestAnExportOfWhichACallFailsDoesNotPassForWhole(t *testing.T) {
	q := open(t, testkit.Miniredis(t), "from", 2).settle().steer()
	whole := q.export(true)
	q.eachCall(1, 8, func() error {
		var out bytes.Buffer
		e := Export{Queue: q.Queue, State: true, Fault: func(text string) { t.Errorf("expected no fault, found %s", text) }}
		err := e.Write(t.Context(), &out)
		failIf(t, err == nil && out.String() != whole, "expected all lines, found\n%s", out.String())
		return err
	}, func(int) {})
}

func TestAnImportOfWhichACallFailsIsToldAndCanBeRepeated(t *testing.T) {
	from := open(t, testkit.Miniredis(t), "from", 1).settle().steer()
	lines := from.export(true)
	to := open(t, testkit.Miniredis(t), "to", 2)
	to.must(lines)
	admin := to.server.Client(t)
	to.eachCall(long.Or(2, 1), 8, func() error {
		for _, part := range to.Parts { // the queue, without what makes it one
			to.ok(admin.Del(t.Context(), admin.Keys(t.Context(), part.Keys.Queue+"*").Val()...).Err())
		}
		i := Import{Queue: to.Queue, By: "ann", Refused: func(r Refusal) { t.Errorf("refused %+v", r) }}
		return i.Read(t.Context(), "fleet.jsonl", strings.NewReader(lines))
	}, func(n int) {
		to.must(lines)
		equal(t, lines, to.export(true))
	})
}

// A batch has a model once, anything that models need has a batch of its own, and no batch is larger than one commit.
func TestABatchOfAnImportHasEachModelOnce(t *testing.T) {
	var lines strings.Builder
	var want []int
	for n := range 2*importBatch + 1 {
		fmt.Fprintf(&lines, "{\"kind\":\"model\",\"uid\":\"m%d\"}\n", n)
	}
	want = append(want, importBatch, importBatch, 1)
	lines.WriteString(`{"kind":"policy","name":"p","policy":{"timeout":"1h"}}` + "\n")
	want = append(want, 1)
	for _, uid := range []string{"a", "b", "a", "a", "c"} {
		fmt.Fprintf(&lines, "{\"kind\":\"model\",\"uid\":%q}\n", uid)
	}
	want = append(want, 2, 1, 2)
	batches := make(chan []*task, len(want)+9)
	b := batcher{ctx: t.Context(), to: batches}
	must(t, errors.Join(definitions.ReadLines("x", strings.NewReader(lines.String()), b.add), b.send()))
	close(batches)
	var sizes []int
	for batch := range batches {
		sizes = append(sizes, len(batch))
		for _, task := range batch {
			stopIf(t, task.err != nil, "expected lines that can be read, found %v", task.err)
		}
	}
	equal(t, want, sizes)
}
