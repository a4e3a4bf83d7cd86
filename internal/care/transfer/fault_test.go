package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/testkit"
)

// eachCall does something again and again: the n-th time its n-th call fails, until there are fewer calls. What it could not do it must tell.
func (q *queue) eachCall(least int, do func() error, after func(n int)) {
	q.t.Helper()
	fault := new(testkit.Fault)
	q.client.AddHook(fault)
	for n := 1; ; n++ {
		fault.Arm(n)
		err := do()
		struck := fault.Struck()
		fault.Arm(0)
		if struck != errors.Is(err, testkit.ErrFault) || !struck && err != nil {
			q.t.Fatalf("call %d: failed: %v, told: %v", n, struck, err)
		}
		after(n)
		if !struck {
			if n <= least {
				q.t.Errorf("expected more than %d calls, found %d", least, n-1)
			}
			return
		}
	}
}

func TestAnExportOfWhichACallFailsDoesNotPassForWhole(t *testing.T) {
	q := open(t, testkit.Miniredis(t), "from", 2).settle().steer()
	whole := q.export(true)
	q.eachCall(8, func() error {
		var out bytes.Buffer
		e := Export{Queue: q.Queue, State: true, Fault: func(text string) { t.Errorf("expected no fault, found %s", text) }}
		err := e.Write(t.Context(), &out)
		if err == nil && out.String() != whole {
			t.Errorf("expected all lines, found\n%s", out.String())
		}
		return err
	}, func(int) {})
}

func TestAnImportOfWhichACallFailsIsToldAndCanBeRepeated(t *testing.T) {
	from := open(t, testkit.Miniredis(t), "from", 1).settle().steer()
	lines := from.export(true)
	to := open(t, testkit.Miniredis(t), "to", 2)
	to.must(lines)
	to.eachCall(8, func() error {
		for _, part := range to.Parts { // the queue, without what makes it one
			for key := range to.server.Dump(t) {
				if strings.HasPrefix(key, part.Keys.Queue) {
					to.ok(to.server.Client(t).Del(t.Context(), key).Err())
				}
			}
		}
		i := Import{Queue: to.Queue, By: "ann", Refused: func(r Refusal) { t.Errorf("refused %+v", r) }}
		return i.Read(t.Context(), "fleet.jsonl", strings.NewReader(lines))
	}, func(n int) {
		to.must(lines)
		if diff := cmp.Diff(lines, to.export(true)); diff != "" {
			t.Errorf("call %d, repeated (-want +got):\n%s", n, diff)
		}
	})
}

// A model stands once in a batch, what models need stands alone, and no batch is larger than what is committed at once.
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
	if err := errors.Join(definitions.ReadLines("x", strings.NewReader(lines.String()), b.add), b.send()); err != nil {
		t.Fatal(err)
	}
	close(batches)
	var sizes []int
	for batch := range batches {
		sizes = append(sizes, len(batch))
		for _, task := range batch {
			if task.err != nil {
				t.Fatalf("expected lines that can be read, found %v", task.err)
			}
		}
	}
	if diff := cmp.Diff(want, sizes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
