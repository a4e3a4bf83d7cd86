package operate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestAReleaseFindsTheHoldThatIsMeant(t *testing.T) {
	for name, row := range map[string]struct {
		holds map[string]string // selectors by id
		asked string
		want  string // its id, or part of the error
	}{
		"by its id":            {map[string]string{"a": "tenant=t1", "b": "tenant=t2"}, "b", "b"},
		"the only one":         {map[string]string{"a": "tenant=t1"}, "", "a"},
		"that of the queue":    {map[string]string{"a": "tenant=t1", "b": ""}, "", "b"},
		"one of two":           {map[string]string{"a": "tenant=t1", "b": "tenant=t2"}, "", "one of the holds a, b"},
		"one of two of all":    {map[string]string{"a": "", "b": ""}, "", "one of the holds a, b"},
		"none there":           {nil, "", "expected a hold, found none"},
		"none of that id":      {map[string]string{"a": ""}, "b", "none of that name"},
		"not that of the rest": {map[string]string{"a": "", "b": "tenant=t2"}, "b", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Operator{Queue: parted(t)}
			for _, id := range slices.Sorted(maps.Keys(row.holds)) {
				must(t, only2(o.Hold(t.Context(), HoldRequest{ID: id, Selector: row.holds[id], Reason: "they move"})))
			}
			hold, err := o.Release(t.Context(), ReleaseRequest{ID: row.asked, Only: row.asked == ""})
			if got := fmt.Sprint(hold.ID, err); err == nil && hold.ID != row.want || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %s, want %s", got, row.want)
			}
			if err != nil {
				return
			}
			left := check.Got(o.Holds(t.Context()))(t)
			for _, h := range left {
				if h.Released != (h.ID == row.want) {
					t.Errorf("hold %s: released: %t", h.ID, h.Released)
				}
			}
			if _, err := o.Release(t.Context(), ReleaseRequest{ID: row.want}); err == nil {
				t.Error("released twice, want it refused")
			}
		})
	}
}

func only2[A, B any](_ A, _ B, err error) error { return err }

func TestAHoldHasAReasonAnEndAndASpread(t *testing.T) {
	o := Operator{Queue: parted(t), By: "ann"}
	for name, row := range map[string]struct {
		request HoldRequest
		field   string
	}{
		"whole":        {HoldRequest{ID: "h1", Selector: "tenant=t1", Reason: "they move", Ending: Ending{For: "2h"}, Within: "10m"}, "-"},
		"no reason":    {HoldRequest{ID: "h2"}, "reason"},
		"no selector":  {HoldRequest{ID: "h2", Reason: "x", Selector: "?"}, "selector"},
		"no end":       {HoldRequest{ID: "h2", Reason: "x", Ending: Ending{For: "soon"}}, "for"},
		"no spread":    {HoldRequest{ID: "h2", Reason: "x", Within: "soon"}, "within"},
		"no good name": {HoldRequest{ID: "a b", Reason: "x"}, "id"},
	} {
		if _, _, err := o.Hold(t.Context(), row.request); refusedField(err) != row.field {
			t.Errorf("%s: got %v, want refused %s", name, err, row.field)
		}
	}
	holds := check.Got(o.Holds(t.Context()))(t)
	if len(holds) != 1 {
		t.Fatalf("got %v, want one hold", holds)
	}
	h := holds[0]
	got := fmt.Sprint(h.ID, " ", h.Selector.String(), " ", h.Reason, " ", h.By, " ", h.Until.Sub(h.Since), " ", h.Within)
	if want := "h1 tenant=t1 they move ann 2h0m0s 10m0s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestALimitIsSetOpenedAndForgotten(t *testing.T) {
	o := Operator{Queue: parted(t), By: "ann"}
	ctx := t.Context()
	must(t, o.SetLimit(ctx, LimitRequest{Key: "host=h", Running: "4", Rate: "10/m", Reason: "slow", Ending: Ending{For: "1h"}}))
	uses := check.Got(o.Limits(ctx, "host=h"))(t)
	if len(uses) != 1 || uses[0].Max != 4 || !uses[0].Set {
		t.Errorf("got %+v, want a limit of 4 that was set", uses)
	}
	for _, part := range o.Queue.Parts {
		text := part.Clients.Read.HGet(ctx, part.Keys.Limits, "host=h").Val()
		limit := check.Got(store.ReadLimit("host=h", text))(t)
		got := fmt.Sprint(limit.Running, " ", limit.Rate.String(), " ", limit.Reason, " ", limit.By, " ", limit.Until.Sub(limit.Since))
		if want := "4 10/m slow ann 1h0m0s"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if err := o.OpenLimit(ctx, "host=h"); err == nil {
		t.Error("opened an open key, want it refused")
	}
	closed := model.Slots{Closed: fixture.SixOClock.Add(time.Hour), By: "m1 (http_429)"}
	part := o.Queue.Parts[1]
	must(t, part.Clients.Write.Set(ctx, part.Keys.Rate("host=h"), closed.String(), 0).Err())
	must(t, o.OpenLimit(ctx, "host=h"))
	if until, _ := model.ParseSlots(part.Clients.Read.Get(ctx, part.Keys.Rate("host=h")).Val()).ClosedAt(fixture.SixOClock.Add(time.Minute)); !until.IsZero() {
		t.Errorf("closed until %v, want it open", until)
	}
	must(t, o.RemoveLimit(ctx, "host=h"))
	if err := o.RemoveLimit(ctx, "host=h"); err == nil {
		t.Error("forgot a limit twice, want it refused")
	}
	if err := o.SetLimit(ctx, LimitRequest{Key: "host=h"}); err == nil {
		t.Error("set a limit of nothing, want it refused")
	}
}

func TestACircuitIsOpenedForAsLongAsAskedOrUsual(t *testing.T) {
	o := Operator{Queue: parted(t), By: "ann"}
	ctx := t.Context()
	must(t, o.SetCircuit(ctx, model.QueueCircuitKey, CircuitSettings{On: true, Share: "25%", Window: "7m", Min: 30}))
	for _, row := range []struct {
		key, probe string
		want       time.Duration
	}{{"host=a", "", policy.DefaultProbe}, {"host=b", "3m", 3 * time.Minute}, {model.QueueCircuitKey, "", 7 * time.Minute}, {model.QueueCircuitKey, "9m", 9 * time.Minute}} {
		if got, err := o.OpenCircuit(ctx, row.key, row.probe, "our proxy"); got != row.want || err != nil {
			t.Errorf("%s for %q: got %v, %v, want %v", row.key, row.probe, got, err, row.want)
		}
	}
	var got []string
	for _, c := range check.Got(o.Circuits(ctx))(t) {
		line := fmt.Sprint(c.Key, " ", c.State(), " ", c.Parts, "/", c.OpenParts.OpenParts)
		if q := c.QueueCircuit; q != nil {
			line += fmt.Sprint(" ", q.On, " ", q.Share, " ", q.Window, " ", q.Min)
		}
		got = append(got, line)
	}
	slices.Sort(got)
	if want := []string{"host=a open 2/2", "host=b open 2/2", "queue open 2/2 true 0.25 7m0s 30"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	must(t, o.CloseCircuit(ctx, "host=a"))
	if err := o.CloseCircuit(ctx, "host=a"); err == nil {
		t.Error("closed a closed circuit, want it refused")
	}
	must(t, o.CloseCircuit(ctx, model.QueueCircuitKey))
	must(t, o.CloseCircuit(ctx, model.QueueCircuitKey)) // it resets its counts
}

func TestTheCircuitOfTheQueueChangesInWhatIsNamedAlone(t *testing.T) {
	o := Operator{Queue: parted(t)}
	ctx := t.Context()
	for _, step := range []struct {
		settings CircuitSettings
		want     string // on, share, window, min; or the refused field
	}{
		{CircuitSettings{Share: "0.3"}, "false 0.3 5m0s 20"},
		{CircuitSettings{On: true}, "true 0.3 5m0s 20"},
		{CircuitSettings{Window: "8m"}, "true 0.3 8m0s 20"},
		{CircuitSettings{Min: 40}, "true 0.3 8m0s 40"},
		{CircuitSettings{On: true, Off: true}, "false 0.3 8m0s 40"},
		{CircuitSettings{Share: "much"}, "share"},
		{CircuitSettings{Share: "200%"}, "share"},
		{CircuitSettings{Window: "long"}, "window"},
	} {
		err := o.SetCircuit(ctx, model.QueueCircuitKey, step.settings)
		got := refusedField(err)
		if err == nil {
			c := check.Got(flow.OfQueue(o.Queue).QueueCircuit(ctx))(t)
			got = fmt.Sprint(c.On, " ", c.Share, " ", c.Window, " ", c.Min)
		}
		if got != step.want {
			t.Errorf("%+v: got %s, want %s", step.settings, got, step.want)
		}
	}
}

func TestAStateOfACircuitIsOneWord(t *testing.T) {
	for want, c := range map[string]Circuit{
		"open": {Open: true, QueueCircuit: &QueueCircuit{}}, "off": {QueueCircuit: &QueueCircuit{}}, "closed": {QueueCircuit: &QueueCircuit{On: true}},
	} {
		if got := c.State(); got != want {
			t.Errorf("%+v: got %s, want %s", c, got, want)
		}
	}
	if got := (&Circuit{}).State(); got != "closed" {
		t.Errorf("of a key: got %s, want closed", got)
	}
}

func TestSettingsOfAQueueChangeInWhatIsNamedAlone(t *testing.T) {
	o := Operator{Queue: parted(t)}
	ctx := t.Context()
	for _, step := range []struct {
		request SettingsRequest
		want    Settings
	}{
		{SettingsRequest{NewErrorAbove: new(9)}, Settings{"{q}", 2, "big_table_uid", "refresh_attempt_uid", "top", 9}},
		{SettingsRequest{ModelName: "id"}, Settings{"{q}", 2, "id", "refresh_attempt_uid", "top", 9}},
		{SettingsRequest{AttemptName: "try"}, Settings{"{q}", 2, "id", "try", "top", 9}},
		{SettingsRequest{Payload: "nested"}, Settings{"{q}", 2, "id", "try", "nested", 9}},
		{SettingsRequest{Payload: "top", NewErrorAbove: new(0)}, Settings{"{q}", 2, "id", "try", "top", 0}},
	} {
		must(t, o.SetQueue(ctx, step.request))
		if got := o.Settings(); got != step.want {
			t.Errorf("%+v: got %+v, want %+v", step.request, got, step.want)
		}
	}
}

func TestAQueueThatWasNeverUsedIsNamedWithOthers(t *testing.T) {
	o := Operator{Queue: parted(t)}
	ctx, client := t.Context(), o.Queue.Parts[0].Clients.Write
	expect := func(want string) {
		t.Helper()
		if got := Unused(ctx, o); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect("no other queue")
	for i := range 7 {
		must(t, client.HSet(ctx, fmt.Sprintf("{other%d}:stats", i), "create", 1).Err())
	}
	expect("…")
	must(t, Execute(ctx, o.Queue, []*Request{put(t, "m1", 1)}))
	expect("")
}
