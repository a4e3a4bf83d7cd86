package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

const damagedTime = `"2026-11-21 six"`

func TestADamagedHoldKeepsWhatCanBeReadAndNamesWhatCannot(t *testing.T) {
	const since, until = `"2026-11-21T06:00:00.000Z"`, `"2026-11-21T07:00:00.000Z"`
	hold := func(selector, since, until, within string) string {
		return fmt.Sprintf(`{"selector":%s,"since":%s,"until":%s,"within":%s,"reason":"they move","by":"ann"}`, selector, since, until, within)
	}
	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	full := model.Hold{ID: "h", Selector: check.Got(model.ParseSelector("uid=a"))(t), Since: at, Until: at.Add(time.Hour), Within: time.Minute, Reason: "they move", By: "ann"}
	damaged := func(change func(*model.Hold)) model.Hold {
		one := full
		change(&one)
		return one
	}
	for name, test := range map[string]struct {
		text string
		want model.Hold
		bad  bool
	}{
		"whole":        {hold(`"uid=a"`, since, until, `"1m"`), full, false},
		"bare":         {`{"selector":""}`, model.Hold{ID: "h"}, false},
		"its selector": {hold(`"status=sad"`, since, until, `"1m"`), damaged(func(h *model.Hold) { h.Selector = model.Selector{} }), true},
		"its begin":    {hold(`"uid=a"`, damagedTime, until, `"1m"`), damaged(func(h *model.Hold) { h.Since = time.Time{} }), true},
		"its end":      {hold(`"uid=a"`, since, damagedTime, `"1m"`), damaged(func(h *model.Hold) { h.Until = time.Time{} }), true},
		"its length":   {hold(`"uid=a"`, since, until, `"soon"`), damaged(func(h *model.Hold) { h.Within = 0 }), true},
		"all of it":    {`no JSON`, model.Hold{ID: "h"}, true},
	} {
		got, err := ReadHold("h", test.text)
		check.FailIf(t, err != nil != test.bad, "%s: %v", name, err)
		check.FailIf(t, !sameHold(got, test.want), "%s:\n got %+v\nwant %+v", name, got, test.want)
		if !test.bad {
			again, err := ReadHold("h", WriteHold(&test.want))
			check.FailIf(t, err != nil || !sameHold(again, got), "%s: written and read back: %+v, %v", name, again, err)
		}
	}
	_, err := ReadHold("h", "no JSON")
	refused, is := errors.AsType[*document.Error](err)
	check.FailIf(t, !is || refused.Field != "holds.h", "got %v", err)
}

func sameHold(a, b model.Hold) bool {
	return a.ID == b.ID && a.Selector.String() == b.Selector.String() && a.Since.Equal(b.Since) && a.Until.Equal(b.Until) && a.Within == b.Within && a.Reason == b.Reason && a.By == b.By
}

func TestALimitIsReadAsItWasWrittenOrNamesWhatCannotBeRead(t *testing.T) {
	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	for _, limit := range []model.Limit{
		{Name: "a=1", Running: 4},
		{Name: "a=1", Running: 4, Rate: policy.Rate{Count: 6, Per: time.Minute}, Since: at, Until: at.Add(time.Hour), Reason: "they ask", By: "ann"},
	} {
		got, err := ReadLimit("a=1", WriteLimit(&limit))
		check.FailIf(t, err != nil || got != limit, "got %+v, %v, want %+v", got, err, limit)
	}
	for _, text := range []string{"no JSON", `{"since":` + damagedTime + `}`, `{"until":` + damagedTime + `}`, `{"rate":"fast"}`} {
		_, err := ReadLimit("a=1", text)
		check.FailIf(t, err == nil, "%s: want it refused", text)
	}
}

func TestWhatCannotBeReadOfTheCircuitOfAQueueIsTheDefault(t *testing.T) {
	usual := model.DefaultQueueCircuit()
	on := usual
	on.On, on.Open = true, true
	own := model.QueueCircuit{On: true, Share: 0.25, Window: time.Minute, Min: 7}
	for name, test := range map[string]struct {
		hash map[string]string
		want model.QueueCircuit
	}{
		"nobody has set it": {nil, usual},
		"set":               {map[string]string{"on": "1", "share": "0.25", "window_ms": "60000", "min": "7"}, own},
		"open":              {map[string]string{"on": "1", "opened_at": "x", "share": "0.25", "window_ms": "60000"}, on},
		"off":               {map[string]string{"on": "0"}, usual},
	} {
		got := ReadQueueCircuit(test.hash)
		check.FailIf(t, got != test.want, "%s: got %+v, want %+v", name, got, test.want)
	}
	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	got := ReadCircuit(map[string]string{"probe": "m", "opened_at": model.FormatTime(at), "probe_at": model.FormatTime(at.Add(time.Second))})
	check.Equal(t, &model.CircuitState{OpenedAt: at, ProbeAt: at.Add(time.Second), Probe: "m"}, got)
}

func TestBlockersAreReadAnewOnlyIfTheirTextsHaveChanged(t *testing.T) {
	part := &Store{Place: 1}
	part.queue = &Queue{Parts: []*Store{{}, part}}
	hold := func(id, since string) []string { return []string{id, `{"selector":"","since":"` + since + `"}`} }
	limits := []string{"a=1", `{"running":1}`, "broken", "no JSON", "{policy}", `{"running":2}`}
	calendars := []string{"c1", `{"name":"c1","rrule":"FREQ=DAILY","for":"1h"}`, "c2", "no JSON"}
	holds := append(append([]string{HoldChanges, "7"}, hold("later", "2026-11-21T07:00:00Z")...), hold("first", "2026-11-21T06:00:00Z")...)
	cache := new(blockerCache)
	got := cache.read(part, [3][]string{append(holds, "broken", "no JSON"), limits, calendars})
	check.FailIf(t, got.HoldChanges != "7" || got.Part != 1 || got.Parts != 2, "got %+v", got)
	var ids []string
	for _, one := range got.Holds {
		ids = append(ids, one.ID)
	}
	check.Equal(t, []string{"broken", "first", "later"}, ids) // to hold too many models is better than to start some
	check.FailIf(t, len(got.Limits) != 1 || got.Limits["a=1"].Running != 1, "limits of keys: %+v", got.Limits)
	check.FailIf(t, len(got.QueueLimits) != 1 || got.QueueLimits[0].Running != 2, "limits of the queue: %+v", got.QueueLimits)
	_, known := got.Calendars["c1"]
	check.FailIf(t, len(got.Calendars) != 1 || !known, "calendars: %+v", got.Calendars)

	again := cache.read(part, [3][]string{append(holds, "broken", "no JSON"), limits, calendars})
	check.FailIf(t, &again.Holds[0] != &got.Holds[0], "the same texts are read again")
	changed := cache.read(part, [3][]string{holds, limits, calendars})
	check.FailIf(t, len(changed.Holds) != 2, "a hold that is gone stays: %+v", changed.Holds)
}

// A queue for which nobody has set anything has limits in its policies: each part has its share of them.
func TestBlockersKnowTheirPartBeforeAnythingIsSet(t *testing.T) {
	part := &Store{Place: 1}
	part.queue = &Queue{Parts: []*Store{{}, part}}
	read := new(blockerCache).read(part, [3][]string{})
	check.FailIf(t, read.Part != 1 || read.Parts != 2, "want part 1 of 2, got %d of %d", read.Part, read.Parts)
}
