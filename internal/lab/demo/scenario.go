package demo

import (
	"cmp"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

const (
	uidSteady    = "steady"
	uidFlaky     = "flaky"
	uidBusy      = "busy"
	uidSlow      = "slow"
	uidUnchanged = "unchanged"
	uidHangs     = "hangs"
	uidGone      = "gone"
	uidMoved     = "moved"
	uidManual    = "manual"
	uidBanner    = "banner"
)

// scenario is one model of the demo.
type scenario struct {
	uid     string
	about   string // for the user
	feed    string // path; empty: its own
	moved   string // path of the second edition; empty: the same
	every   int    // seconds between planned refreshes; 0: one-shot
	timeout string
	planned bool // the first refresh waits for the schedule
	giveUp  bool // disabled after the last retry, instead of waiting for the next planned refresh
}

var scenarios = []scenario{
	{uid: uidSteady, about: "a feed that is always well", every: 3, timeout: "2s"},
	{uid: uidUnchanged, about: "answers 304 to whoever has its only edition", every: 4, timeout: "2s"},
	{uid: uidFlaky, about: "503 twice, then well", every: 10, timeout: "5s"},
	{uid: uidBusy, about: "429 with Retry-After: 2, then well", every: 15, timeout: "5s"},
	{uid: uidSlow, about: "takes its time, and reports its progress", every: 5, timeout: "10s"},
	{uid: uidHangs, about: "takes the request and never answers", every: 30, timeout: "1s", giveUp: true},
	{uid: uidGone, about: "404 for ever", every: 5, timeout: "2s"},
	{uid: uidMoved, about: "404 until its owner saves the new address", feed: path(uidGone), moved: path(uidSteady), every: 5, timeout: "2s"},
	{uid: uidManual, about: "planned for midnight, run by hand", feed: path(uidSteady), every: 24 * 60 * 60, timeout: "1s", planned: true},
	{uid: uidBanner, about: "no schedule: refreshed on every save", timeout: "30s"},
}

func path(uid string) string { return "/" + uid + ".csv" }

// put returns the control message that saves the model. Its schedule counts from start, so that a demo looks the same at any time. edition makes two
// saves of a model differ.
func (s scenario) put(site string, start time.Time, edition int) map[string]any {
	feed := cmp.Or(s.feed, path(s.uid))
	if edition > 1 {
		feed = cmp.Or(s.moved, feed)
	}
	exhausted, refresh, retries := policy.NextPlanned, model.RefreshNow, any([]string{"0", "1s"})
	if s.giveUp {
		exhausted = policy.GiveUp
	}
	if s.planned {
		refresh = model.RefreshPlanned
		retries = map[string]any{"strategy": "fixed", "base": "1s"} // without end: the next planned refresh is far away, and a busy machine slow
	}
	message := map[string]any{
		"type":    "put",
		"uid":     s.uid,
		"payload": map[string]any{"input_url": fmt.Sprintf("%s%s?edition=%d", site, feed, edition)},
		"policy":  map[string]any{"timeout": s.timeout, "retries": retries, "on_exhausted": string(exhausted)},
		"refresh": string(refresh),
	}
	if s.every > 0 {
		message["rrule"] = fmt.Sprintf("FREQ=SECONDLY;INTERVAL=%d", s.every)
		message["dtstart"] = start.UTC().Format("2006-01-02T15:04:05")
	}
	return message
}
