package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/redis"
)

// The instants of the tables, in Unix ms. It is six on the bench's clock.
const (
	six     = 1795240800000
	minute  = 60_000
	tenPast = six + 10*minute
)

// dueModel waits since six; running took an attempt a minute before.
var (
	dueModel = hash{"rev": "7", "refresh_at": "2026-11-21T06:00:00.000Z", "refresh_why": "saved: refresh now"}
	running  = hash{
		"rev": "8", "refresh_at": "2026-11-21T06:09:00.000Z", "refresh_why": "on timeout: retry 1 of 3 at once",
		"attempt_uid": "a1", "attempt_no": "1",
		"started_at": "2026-11-21T05:59:00.000Z", "deadline_at": "2026-11-21T06:09:00.000Z", "trying_since": "2026-11-21T05:59:00.000Z",
		"entry_times": "2026-11-21T05:59:00.000Z",
	}
)

// queuedEntry is the entry of the attempt of running.
const queuedEntry = `{"big_table_uid":"m1","refresh_attempt_uid":"a1","input_url":"u","attempt_no":1,"deadline_at":"2026-11-21T06:09:00.000Z",` +
	`"fence":1795240740000,"due_at":"2026-11-21T05:59:00.000Z","for":"change"}`

// atSix is the fence in the entry of an attempt that starts at six.
func atSix(purpose string) string {
	return `,"fence":1795240800000,"due_at":"2026-11-21T06:00:00.000Z","for":"` + purpose + `"`
}

// fencedAtSix is queuedEntry of an attempt that starts at six.
func fencedAtSix(purpose string) string {
	entry, _, _ := strings.Cut(queuedEntry, `,"fence"`)
	return strings.Replace(entry, "06:09", "06:10", 1) + atSix(purpose) + "}"
}

// but returns a copy of fields with others in place; an empty value removes a field.
func but(fields hash, changes ...string) hash {
	fields = maps.Clone(fields)
	for pair := range slices.Chunk(changes, 2) {
		if fields[pair[0]] = pair[1]; pair[1] == "" {
			delete(fields, pair[0])
		}
	}
	return fields
}

// ended are the changes when an attempt ends at six.
func ended(fields hash, changes ...string) hash {
	gone := []string{"attempt_uid", "", "started_at", "", "deadline_at", "", "entry_times", "", "last_attempt_uid", "a1", "rev", "9", "fence", "1795240740000"}
	return but(fields, append(gone, changes...)...)
}

// and returns both sets of keys as one.
func and(sets ...keys) keys {
	all := keys{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

// answered is a message that somebody waits for, between two others; rest is what stays.
var (
	answered = keys{":claimed:p1": list{"obefore", "oanswer", "oafter"}}
	rest     = keys{":claimed:p1": list{"obefore", "oafter"}}
)

// idleKeys are what else there is when the attempt of runningKeys is over.
var idleKeys = keys{":payload:m1": `{"input_url":"u"}`, ":running": scores{"m2": six}}

func waitingKeys() keys {
	return keys{":model:m1": dueModel, ":payload:m1": `{"input_url":"u"}`, ":due": scores{"m1": six, "m2": six}}
}

func runningKeys() keys {
	return keys{":model:m1": running, ":payload:m1": `{"input_url":"u"}`, ":running": scores{"m1": six + 9*minute, "m2": six}}
}

// eventCase is one transition, with everything that Redis holds before and after.
type eventCase struct {
	name    string
	seed    keys
	act     func(b *bench, r *Record) *Transition
	want    keys
	answers string // a claimed message; empty: none
}

var eventCases = slices.Concat(startCases, resultCases, failureCases, pastErrorCases, commandCases, freshnessCases)

// withJournal completes the journal that is wanted. Beside event and notes, each entry has uid and instant, and each changed field of the model,
// without a value if it is gone, except fields that go with attempt_uid and a revision that is one more. It always has why the model waits, and the
// fingerprint of its failure.
func withJournal(seed, want keys) keys {
	const stream = ":journal"
	entries, journaled := want[stream].(events)
	if !journaled {
		return want
	}
	before, _ := seed[":model:m1"].(hash)
	entry := map[string]any{"uid": "m1", "at": "2026-11-21T06:00:00.000Z"}
	maps.Copy(entry, entries[0])
	if after, stays := want[":model:m1"].(hash); stays {
		maps.Copy(entry, changed(before, after))
		if why := after["refresh_why"]; why != "" {
			entry["refresh_why"] = why
		}
		fails := entry["event"] == "failure" || entry["event"] == "timeout"
		if fails && after["error"] != "" && before["again"] == "" { // a model that is wanted again does not count
			entry["error"] = after["error"]
		}
	}
	if entry["rev"] != nil && redis.ParseInt(before["rev"])+1 == redis.ParseInt(fmt.Sprint(entry["rev"])) {
		delete(entry, "rev")
	}
	if entry["attempt_uid"] == "" { // they go with it
		maps.DeleteFunc(entry, func(name string, value any) bool { return slices.Contains(attemptFields, name) && value == "" })
	}
	told := events{entry}
	if outbox, is := want[":outbox"].(events); is && outbox[0]["event"] == "new_error" {
		told = append(told, outbox[0])
	}
	return and(want, keys{stream: told})
}

// changed are the fields in which one hash differs from the other, empty where it has none.
func changed(before, after hash) map[string]any {
	fields := map[string]any{}
	for name, value := range after {
		if value != before[name] {
			fields[name] = value
		}
	}
	for name := range before {
		if after[name] == "" {
			fields[name] = ""
		}
	}
	return fields
}

// answering is the item of a transition, which may answer a claimed message.
func answering(message string, t *Transition) Item {
	return Item{Transition: t, Message: Claimed{message}}
}

func TestEachEventChangesExactlyWhatItShould(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, test := range eventCases {
			t.Run(test.name, func(t *testing.T) {
				b := b.fresh(t)
				b.seed(test.seed)
				expectCodes(t, b.commit(answering(test.answers, test.act(b, b.load("m1")))), CodeApplied)
				b.expect(withJournal(test.seed, test.want))
			})
		}
	})
}

func TestATransitionSentTwiceAfterALostReplyCountsOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range eventCases {
			t.Run(test.name, func(t *testing.T) {
				b := b.fresh(t)
				b.seed(test.seed)
				item := answering(test.answers, test.act(b, b.load("m1")))
				expectCodes(t, b.commit(item), CodeApplied)
				b.unchanged(func() { b.commit(item) })
			})
		}
	})
}
