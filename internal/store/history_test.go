package store

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func TestAStateIsReadFromTheFieldsThatWereWrittenAndFromNothingElse(t *testing.T) {
	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	want := model.State{
		RefreshAt: at, Why: "planned", AttemptUID: "a1", AttemptNo: 2, StartedAt: at.Add(time.Minute), DeadlineAt: at.Add(time.Hour), Worker: "w", Ticket: 7,
		Freshness: model.Fresh, StaleAt: at, Counted: "limit:a=1", Again: true, SilentAfter: time.Minute, TotalRetries: 3,
		EntryDeadlineAt: at.Add(2 * time.Hour), Fence: at.Add(time.Hour).UnixMilli(),
	}
	fields := StateFields(&model.Model{UID: "m", Payload: "{}", State: want})
	value := func(change func(map[string]any)) map[string]any {
		all := map[string]any{}
		for name, text := range fields {
			all[name] = text
		}
		change(all)
		return all
	}
	got, err := ReadState(value(func(map[string]any) {}))
	check.FailIf(t, err != nil || got != want, "got %+v, %v, want %+v", got, err, want)
	empty, err := ReadState(map[string]any{})
	check.FailIf(t, err != nil || empty != (model.State{}), "nothing became %+v, %v", empty, err)
	_, defined := fields["payload"]
	check.FailIf(t, defined, "a field of the definition is one of the state: %v", maps.Clone(fields))
	for name, change := range map[string]func(map[string]any){
		"an unknown field":           func(all map[string]any) { all["color"] = "red" },
		"a number for a text":        func(all map[string]any) { all["refresh_why"] = 7 },
		"a time that is none":        func(all map[string]any) { all["refresh_at"] = "soon" },
		"a number in another form":   func(all map[string]any) { all["attempt_no"] = "02" },
		"a time with more digits":    func(all map[string]any) { all["refresh_at"] = "2026-11-21T06:00:00.0000Z" },
		"a field of the definition":  func(all map[string]any) { all["policy"] = "p" },
		"a flag that nobody writes":  func(all map[string]any) { all["again"] = "yes" },
		"an instant in another zone": func(all map[string]any) { all["refresh_at"] = "2026-11-21T07:00:00.000+01:00" },
	} {
		_, err := ReadState(value(change))
		refused, is := errors.AsType[*document.Error](err)
		check.FailIf(t, !is || refused.Field == "", "%s: got %v", name, err)
	}
}

func TestWhatCannotBeReadOfAHistoryIsLeftOut(t *testing.T) {
	entry := (&model.Attempt{AttemptUID: "a1", AttemptNo: 2, Outcome: model.EventSuccess, StartedAt: time.UnixMilli(1), EndedAt: time.UnixMilli(2)}).Entry()
	got := ParseAttempts([]string{"no JSON", entry, ""})
	check.FailIf(t, len(got) != 1 || got[0].AttemptUID != "a1", "got %+v", got)
}

func TestTheNameOfADaemonSaysWhereAndSinceWhenItRuns(t *testing.T) {
	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	name := NewOwner(func() time.Time { return at })
	owner := ReadOwner(name)
	check.FailIf(t, owner.Host == "" || owner.PID == "" || !owner.Since.Equal(at), "%s is read as %+v", name, owner)
	plain := ReadOwner(NewOwner(nil))
	check.FailIf(t, plain.Host != owner.Host || plain.PID != owner.PID || !plain.Since.IsZero(), "without a clock: %+v", plain)
	one, two := NewOwner(nil), NewOwner(nil)
	check.FailIf(t, one == two, "two daemons have one name")
	next := NextOwner(name)
	check.FailIf(t, next == name || PoolName(next) != PoolName(name) || PoolName(NextOwner(next)) != PoolName(name), "%s is called %s, a pool %s", name, next, PoolName(next))
	check.Equal(t, Owner{}, ReadOwner("chosen"))
}

func TestTheOrderOfAPoolIsAVerbAndWhoHasGivenIt(t *testing.T) {
	for text, want := range map[string]PoolOrder{"": {}, "stop": {Verb: "stop"}, "quiet ann of ops": {Verb: "quiet", By: "ann of ops"}} {
		got := readPoolOrder(text)
		check.FailIf(t, got != want, "%q: got %+v", text, got)
	}
}
