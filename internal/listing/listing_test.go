package listing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

var (
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestAPageIsReadAsItWasWrittenAndNothingElseIs(t *testing.T) {
	for _, page := range []Cursor{{Place: store.WalkBegins, UID: "a"}, {Sort: SortDue, Score: 12, UID: "a"}, {Part: 3, Place: "17"}, {Sort: SortFailing, Score: -1, UID: `a"b`}} {
		got, err := ParseCursor(page.String(), page.Sort)
		failIf(t, err != nil || got != page, "expected %v, found %v, %v", page, got, err)
	}
	got, err := ParseCursor("", SortDue)
	failIf(t, err != nil || got != (Cursor{Sort: SortDue, Place: store.WalkBegins}), "expected the beginning, found %v, %v", got, err)
	for name, test := range map[string]struct{ text, sort string }{
		"no base64":        {"###", ""},
		"no JSON":          {"bm8", ""},
		"nothing":          {Cursor{}.String(), ""},
		"no model":         {Cursor{Sort: SortDue, Place: store.WalkBegins}.String(), SortDue},
		"a part below 0":   {Cursor{Part: -1, Place: store.WalkBegins, UID: "a"}.String(), ""},
		"of another order": {Cursor{Sort: SortDue, UID: "a"}.String(), SortFailing},
		"of no order":      {Cursor{Place: store.WalkBegins, UID: "a"}.String(), SortDue},
	} {
		got, err := ParseCursor(test.text, test.sort)
		failIf(t, err == nil || !strings.Contains(err.Error(), "after: "), "%s: expected it refused, found %v, %v", name, got, err)
	}
}

// filled is a queue of models: each third is of the tenant t0, and the first two fail.
func filled(t *testing.T, server *testkit.Server, models int) *fixture.Queue {
	t.Helper()
	q := fixture.New(t, server)
	p := check.Got(poller.New(poller.RoomsOf(q.Store), poller.Config{Owner: "p1", Clock: q.Clock.Now}))(t)
	for i := range models {
		q.Command(fmt.Sprintf(`{"type":"put","uid":"m%03d","rrule":"every day at 6 AM","labels":{"tenant":"t%d"}}`, i, i%3))
	}
	for done := 0; done < models; {
		round, err := p.RunOnce(t.Context())
		if err != nil || round.Applied == 0 {
			t.Fatal(round, err)
		}
		done += round.Applied
	}
	return q
}

// list walks to the end, or until visit has had enough, and returns the uids.
func list(t *testing.T, queue *store.Queue, which Query, most int) (uids []string, last Cursor) {
	t.Helper()
	enough := errors.New("enough")
	err := Walk(t.Context(), queue, which, func(found []Item, _ Cursor) error {
		for _, one := range found {
			uids, last = append(uids, one.Record.UID), one.Cursor
			if len(uids) == most {
				return enough
			}
		}
		return nil
	})
	stopIf(t, err != nil && !errors.Is(err, enough), "%v", err)
	return uids, last
}

func TestPagesOfAnySizeTellEachModelThatIsPickedOnce(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		q := filled(t, server, 30)
		queue := &store.Queue{Name: "bigtables", Parts: []*store.Store{q.Store}}
		for _, selector := range []string{"", "tenant=t0", "uid=m01*", "tenant!=t0", "tenant=t9"} {
			picks := check.Got(model.ParseSelector(selector))(t)
			for _, sort := range []string{"", SortDue} {
				want, _ := list(t, queue, Query{Picks: picks, Sort: sort, From: begins(sort)}, 0)
				counts := map[string]int{"": 30, "tenant=t0": 10, "uid=m01*": 10, "tenant!=t0": 20}
				failIf(t, len(want) != counts[selector], "%q %q: expected %d, found %q", selector, sort, counts[selector], want)
				for _, size := range []int{1, 7, 30} {
					var got []string
					for from := begins(sort); ; {
						uids, last := list(t, queue, Query{Picks: picks, Sort: sort, From: from}, size)
						got = append(got, uids...)
						if len(uids) < size {
							break
						}
						from = check.Got(ParseCursor(last.String(), sort))(t)
					}
					if sort == "" {
						slices.Sort(got)
						want = slices.Sorted(slices.Values(want))
					}
					diff := cmp.Diff(want, got)
					failIf(t, diff != "", "%q %q, pages of %d: -want +got\n%s", selector, sort, size, diff)
				}
			}
		}
	})
}

func begins(sort string) Cursor {
	page, _ := ParseCursor("", sort) // the beginning
	return page
}

func TestAnErrorOfTheVisitEndsTheWalkAndSoDoesTheEndOfTheContext(t *testing.T) {
	q := filled(t, testkit.Miniredis(t), 3)
	queue := &store.Queue{Name: "bigtables", Parts: []*store.Store{q.Store}}
	broken := errors.New("broken")
	for _, sort := range []string{"", SortDue} {
		if err := Walk(t.Context(), queue, Query{Sort: sort, From: begins(sort)}, func([]Item, Cursor) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("%q: expected the error of the visit, found %v", sort, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		visits := 0
		err := Walk(ctx, queue, Query{Sort: sort, From: begins(sort)}, func([]Item, Cursor) error { visits++; cancel(); return nil })
		failIf(t, !errors.Is(err, context.Canceled) || visits != 1, "%q: expected the end of the context, found %v after %d visits", sort, err, visits)
	}
}
