package conformance

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// refusals are what Redis says that takes nothing for a moment, in its own words.
var refusals = []refusal{
	{text: "OOM command not allowed when used memory > 'maxmemory'."},
	{text: "READONLY You can't write against a read only replica."},
	{text: "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."},
	{text: "NOREPLICAS Not enough good replicas to write."},
	{text: "TRYAGAIN Multiple keys request during rehashing of slot"},
	{text: "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", all: true},
	{text: "LOADING Redis is loading the dataset in memory", all: true},
	{text: "CLUSTERDOWN The cluster is down", all: true},
	{text: "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", all: true},
}

// verdicts are what Redis says to what it will never take.
var verdicts = []string{
	"NOPERM this user has no permissions to access one of the keys used as arguments",
	"WRONGTYPE Operation against a key holding the wrong kind of value",
}

// moment is how long Redis refuses everything: longer than the work that is under way, which lasts long enough to ask whether it counts.
const moment = 1500 * time.Millisecond

// playRefusals lets Redis refuse what the worker says: for a moment, for ever, and for longer than the attempt may last.
func playRefusals(ctx context.Context, s *stage) {
	for _, r := range refusals {
		code, _, _ := strings.Cut(r.text, " ")
		refuseForAMoment(ctx, s, code, r)
		s.must("works on, and pushes a result again that Redis refuses: "+code, s.until(ctx, code, model.EventSuccess), silence)
	}
	for _, text := range verdicts {
		code, _, _ := strings.Cut(text, " ")
		s.should("goes on after a result that Redis never takes: "+code, goesOn(ctx, s, code, text, "1h"), "it takes no other attempt")
	}
	s.should("goes on when a result could not be pushed within its deadline", goesOn(ctx, s, "late", refusals[0].text, "2s"), "it takes no other attempt")
}

// goesOn refuses the result of an attempt for ever, and reports whether the worker takes another one.
func goesOn(ctx context.Context, s *stage, uid, text, timeout string) bool {
	s.proxy.refuse(refusal{})
	s.putFor(ctx, uid, work{"do": "succeed", "after_ms": 300}, timeout)
	s.inHand(ctx, uid)
	s.proxy.refuse(refusal{text: text, times: math.MaxInt})
	s.put(ctx, "after-"+uid, succeed)
	return s.taken(ctx, "after-"+uid)
}

// refuseForAMoment refuses each message twice, and of those errors that refuse reads, too, all that the worker asks while it works.
func refuseForAMoment(ctx context.Context, s *stage, uid string, r refusal) {
	messages, todo := refusal{text: r.text, times: 2}, work{"do": "succeed"}
	s.proxy.refuse(messages)
	if r.all {
		todo["after_ms"] = 1_200
	}
	s.put(ctx, uid, todo)
	if r.all {
		s.inHand(ctx, uid)
		s.proxy.refuse(r)
		time.AfterFunc(moment, func() { s.proxy.refuse(messages) }) // nothing succeeds before
	}
}
