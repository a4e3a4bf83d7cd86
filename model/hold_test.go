package model

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func TestAHoldIsRefusedByTheFirstFieldOutOfRange(t *testing.T) {
	for name, test := range map[string]struct {
		hold  Hold
		field string // "-": it is accepted
	}{
		"of the whole queue":      {Hold{ID: "h"}, "-"},
		"no name":                 {Hold{}, "id"},
		"a name with a space":     {Hold{ID: "a b"}, "id"},
		"a length below zero":     {Hold{ID: "h", Within: -1}, "within"},
		"the longest length":      {Hold{ID: "h", Within: MaxWithin}, "-"},
		"a longer one":            {Hold{ID: "h", Within: MaxWithin + 1}, "within"},
		"an end":                  {Hold{ID: "h", Since: monday, Until: monday.Add(1)}, "-"},
		"an end at its beginning": {Hold{ID: "h", Since: monday, Until: monday}, "until"},
		"of failing models":       {Hold{ID: "h", Selector: selectorOf(t, "status=failing")}, "-"},
		"of a label":              {Hold{ID: "h", Selector: selectorOf(t, "tenant=t1")}, "-"},
		"of running models":       {Hold{ID: "h", Selector: selectorOf(t, "tenant=t1,status=running")}, "selector"},
		"of failing or disabled":  {Hold{ID: "h", Selector: selectorOf(t, "status=failing|disabled")}, "selector"},
	} {
		err := test.hold.Validate()
		failIf(t, err == nil != (test.field == "-") || refusedField(err) != test.field, "%s: got %v, want a refusal of %q", name, err, test.field)
	}
}

func TestTheStartsAfterAHoldAreSpreadOverItsLengthByTheirUIDs(t *testing.T) {
	at := func(within time.Duration, id, uid string) time.Duration {
		hold := Hold{ID: id, Until: monday, Within: within}
		return hold.StartsAt(uid).Sub(monday)
	}
	failIf(t, at(0, "h", "a") != 0, "without a length: %s late", at(0, "h", "a"))
	var all []time.Duration
	for i := range 100 {
		after := at(time.Hour, "h", strings.Repeat("a", i+1))
		failIf(t, after < 0 || after >= time.Hour || after%time.Millisecond != 0, "after %s", after)
		all = append(all, after)
	}
	failIf(t, slices.Min(all) > 10*time.Minute || slices.Max(all) < 50*time.Minute, "from %s to %s of an hour", slices.Min(all), slices.Max(all))
	failIf(t, at(time.Hour, "h", "a") == at(time.Hour, "i", "a"), "each hold has the same order")
}

// closedUntil is a calendar that is closed from monday on for two hours.
func closedUntil(t *testing.T) schedule.Calendar {
	t.Helper()
	calendar, err := schedule.ParseCalendar(jsonOf(t, `{"name":"nights","rrule":"FREQ=YEARLY","dtstart":"`+monday.Format("2006-01-02T15:04:05")+`","for":"2h"}`))
	must(t, err)
	return calendar
}

func TestOfAllThatStopAModelTheOneThatEndsLastIsItsBlocker(t *testing.T) {
	ends := func(id string, after time.Duration, selector string) Hold {
		return Hold{ID: id, Until: monday.Add(after), Selector: selectorOf(t, selector)}
	}
	for name, test := range map[string]struct {
		holds   []Hold
		blocker Blocker
		recheck time.Time
	}{
		"none":                 {nil, "", time.Time{}},
		"one":                  {[]Hold{ends("a", time.Hour, "")}, "hold:a", monday.Add(time.Hour)},
		"it has ended":         {[]Hold{ends("a", 0, "")}, "", time.Time{}},
		"of another model":     {[]Hold{ends("a", time.Hour, "uid=b")}, "", time.Time{}},
		"of due models":        {[]Hold{ends("a", time.Hour, "status=due")}, "hold:a", monday.Add(time.Hour)},
		"the first ends last":  {[]Hold{ends("a", 2, ""), ends("b", 1, "")}, "hold:a", monday.Add(2)},
		"the second ends last": {[]Hold{ends("a", 1, ""), ends("b", 2, "")}, "hold:b", monday.Add(2)},
		"they end together":    {[]Hold{ends("a", 1, ""), ends("b", 1, "")}, "hold:a", monday.Add(1)},
		"one ends never":       {[]Hold{ends("a", 1, ""), {ID: "b"}, ends("c", 2, "")}, "hold:b", Never},
	} {
		b := Blockers{Holds: test.holds}
		m := &Model{UID: "a", State: State{RefreshAt: monday}}
		blocker, recheck := b.Stop(m, monday)
		failIf(t, blocker != test.blocker || !recheck.Equal(test.recheck), "%s: got %q until %s", name, blocker, recheck)
		failIf(t, b.Empty() != (len(test.holds) == 0), "%s: empty: %t", name, b.Empty())
	}
	failIf(t, (&Blockers{QueueLimits: []QueueLimit{{}}}).Empty(), "a limit of the queue stops nobody")
}

func TestACalendarStopsItsModelsWhileItIsClosed(t *testing.T) {
	b := Blockers{Calendars: map[string]schedule.Calendar{"nights": closedUntil(t)}}
	end := monday.Add(2 * time.Hour)
	for name, test := range map[string]struct {
		closed  []string
		holds   []Hold
		now     time.Time
		blocker Blocker
		recheck time.Time
	}{
		"closed":              {[]string{"nights"}, nil, monday, "calendar:nights", end},
		"open":                {[]string{"nights"}, nil, end, "", time.Time{}},
		"not stored":          {[]string{"days"}, nil, monday, "", time.Time{}},
		"not of the policy":   {nil, nil, monday, "", time.Time{}},
		"a hold ends later":   {[]string{"nights"}, []Hold{{ID: "h", Until: end.Add(1)}}, monday, "hold:h", end.Add(1)},
		"a hold ends at once": {[]string{"nights"}, []Hold{{ID: "h", Until: end}}, monday, "hold:h", end},
		"a hold ends before":  {[]string{"nights"}, []Hold{{ID: "h", Until: end.Add(-1)}}, monday, "calendar:nights", end},
	} {
		b.Holds = test.holds
		blocker, recheck := b.Stop(&Model{UID: "a", Policy: policy.Policy{Closed: test.closed}}, test.now)
		failIf(t, blocker != test.blocker || !recheck.Equal(test.recheck), "%s: got %q until %s", name, blocker, recheck)
	}
}

func TestABlockerOpensWhenWhatItNamesIsOver(t *testing.T) {
	b := Blockers{Holds: []Hold{{ID: "h", Until: monday.Add(1)}, {ID: "ever"}, {ID: "over", Until: monday}}, Calendars: map[string]schedule.Calendar{"nights": closedUntil(t)}}
	for blocker, want := range map[Blocker]time.Time{
		"hold:h": monday.Add(1), "hold:ever": Never, "hold:over": {}, "hold:gone": {},
		"calendar:nights": monday.Add(2 * time.Hour), "calendar:gone": {}, "suspect:": Never, "limit:a=1": {}, "circuit:a=1": {},
	} {
		opens, recheck := b.Opens(blocker, monday)
		failIf(t, opens != want.IsZero() || !recheck.Equal(want), "%s: opens %t, to be looked at again at %s, want %s", blocker, opens, recheck, want)
		kind, _ := blocker.Split()
		failIf(t, blocker.Timed() != (kind == BlockerHold || kind == BlockerCalendar), "%s: at a known time: %t", blocker, blocker.Timed())
	}
}

func TestAModelGoesOnBehindAHoldWhenItsTurnComes(t *testing.T) {
	b := Blockers{Holds: []Hold{{ID: "h", Until: monday, Within: time.Hour}}}
	now := monday.Add(time.Second)
	for blocker, want := range map[Blocker]time.Time{
		"hold:h": b.Holds[0].StartsAt("a"), "hold:gone": now, "calendar:nights": now, "circuit:a=1": now, // its state is not known: it is closed
	} {
		m := &Model{UID: "a", State: State{RefreshAt: monday, ParkedBy: blocker, ParkedSince: monday}}
		decision, goes := b.Pass(m, &Limiters{}, "a1", now)
		failIf(t, !goes || decision.Event != EventReleased || !decision.Next.RefreshAt.Equal(want), "%s: got %s at %s, want it released at %s",
			blocker, decision.Event, decision.Next.RefreshAt, want)
	}
}

func TestACommandOfTheQueueIsReadAndNeedsNoModel(t *testing.T) {
	until := monday.Add(time.Hour)
	for raw, want := range map[string]Command{
		`{"type":"hold","id":"h","reason":"r"}`:                               {Type: CommandHold, Hold: Hold{ID: "h", Reason: "r"}},
		`{"type":"hold","id":"h","reason":"r","for":"2h","within":"5m"}`:      {Type: CommandHold, Hold: Hold{ID: "h", Reason: "r", Within: 5 * time.Minute}, For: 2 * time.Hour},
		`{"type":"hold","id":"h","reason":"r","selector":"tenant=t1"}`:        {Type: CommandHold, Hold: Hold{ID: "h", Reason: "r", Selector: selectorOf(t, "tenant=t1")}},
		`{"type":"hold","id":"h","reason":"r","until":"` + fine(until) + `"}`: {Type: CommandHold, Hold: Hold{ID: "h", Reason: "r", Until: until}},
		`{"type":"release","id":"h"}`:                                         {Type: CommandRelease, Hold: Hold{ID: "h"}},
		`{"type":"release","id":"h","within":"0s"}`:                           {Type: CommandRelease, Hold: Hold{ID: "h"}, Spread: true},
		`{"type":"release","id":"h","within":"24h"}`:                          {Type: CommandRelease, Hold: Hold{ID: "h", Within: MaxWithin}, Spread: true},
		`{"type":"open_limit","key":"host=a"}`:                                {Type: CommandOpen, Key: "host=a"},
		`{"type":"requeue"}`:                                                  {Type: CommandRequeue},
		`{"type":"requeue","uid":"a"}`:                                        {Type: CommandRequeue, UID: "a"},
	} {
		got, err := DecodeCommand([]byte(raw))
		failIf(t, err != nil || !reflect.DeepEqual(got, want), "%s:\n got %+v, %v\nwant %+v", raw, got, err, want)
		failIf(t, !got.Type.OfQueue(), "%s is about a model", raw)
	}
	for _, of := range []CommandType{CommandPut, CommandRemove, CommandRun, CommandEnable, CommandDisable, CommandAccept, CommandReject, ""} {
		failIf(t, of.OfQueue(), "%q is about the queue", of)
	}
}

// fine is an instant with more digits than are kept.
func fine(at time.Time) string { return at.Add(999 * time.Microsecond).Format(time.RFC3339Nano) }

func TestACommandOfTheQueueIsRefusedByItsField(t *testing.T) {
	const hold = `{"type":"hold","id":"h","reason":"r"`
	for raw, want := range map[string]string{
		`{"type":"hold","id":"h"}`:                           "reason",
		`{"type":"hold","reason":"r"}`:                       "id",
		hold + `,"for":"0s"}`:                                "for",
		hold + `,"for":"-1h"}`:                               "for",
		hold + `,"for":"1h","until":"2030-01-01T00:00:00Z"}`: "until",
		hold + `,"until":"tomorrow"}`:                        "until",
		hold + `,"selector":"status=sad"}`:                   "selector.status",
		hold + `,"uid":"a"}`:                                 "uid",
		`{"type":"release"}`:                                 "id",
		`{"type":"release","id":"h","within":"24h1ms"}`:      "within",
		`{"type":"release","id":"h","within":"-1s"}`:         "within",
		`{"type":"release","id":"h","for":"1h"}`:             "for",
		`{"type":"open_limit"}`:                              "key",
		`{"type":"open_limit","key":""}`:                     "key",
		`{"type":"requeue","uid":"a b"}`:                     "uid",
		`{"type":"requeue","uid":""}`:                        "uid",
	} {
		_, err := DecodeCommand([]byte(raw))
		failIf(t, refusedField(err) != want, "%s: got %v, want a refusal of %s", raw, err, want)
	}
}

func TestAHoldBeginsWhenItsCommandIsAppliedAndEndsAsItSays(t *testing.T) {
	for _, test := range []struct {
		length time.Duration
		until  time.Time
		want   time.Time
	}{{0, time.Time{}, time.Time{}}, {time.Hour, time.Time{}, monday.Add(time.Hour)}, {0, monday.Add(2), monday.Add(2)}} {
		c := Command{Hold: Hold{ID: "h", Until: test.until}, For: test.length, By: "ann"}
		hold := c.HoldAt(monday)
		failIf(t, !hold.Until.Equal(test.want) || !hold.Since.Equal(monday) || hold.By != "ann", "got %+v, want it until %s", hold, test.want)
	}
}
