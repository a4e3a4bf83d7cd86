package demo

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// The models of the demo.
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

// role is one model of the demo, as its application saves it.
type role struct {
	uid     string
	about   string // for the audience
	path    string // of its feed
	every   int    // seconds between planned refreshes; 0: one-shot
	timeout string
	planned bool // the first refresh waits for the schedule
	giveUp  bool // disabled after the last retry, instead of waiting for the next planned refresh
}

// daily is every for a role that the schedule does not wake during the demo.
const daily = 24 * 60 * 60

var cast = []role{
	{uid: uidSteady, about: "a feed that is always well", path: pathSteady, every: 3, timeout: "2s"},
	{uid: uidUnchanged, about: "answers 304 to whoever has its only edition", path: pathUnchanged, every: 4, timeout: "2s"},
	{uid: uidFlaky, about: "503 twice, then well", path: pathFlaky, every: 10, timeout: "5s"},
	{uid: uidBusy, about: "429 with Retry-After: 2, then well", path: pathBusy, every: 15, timeout: "5s"},
	{uid: uidSlow, about: "takes its time and tells how far it is", path: pathSlow, every: 5, timeout: "10s"},
	{uid: uidHangs, about: "takes the request and never answers", path: pathHangs, every: 30, timeout: "1s", giveUp: true},
	{uid: uidGone, about: "404 for ever", path: pathGone, every: 5, timeout: "2s"},
	{uid: uidMoved, about: "404 until its owner saves the new address", path: pathGone, every: 5, timeout: "2s"},
	{uid: uidManual, about: "planned for midnight, run by hand", path: pathSteady, every: daily, timeout: "1s", planned: true},
	{uid: uidBanner, about: "no schedule: refreshed on every save", path: pathBanner, timeout: "30s"},
}

// find returns the role of a model; there is one.
func find(uid string) role {
	for _, r := range cast {
		if r.uid == uid {
			return r
		}
	}
	panic("demo: expected a model of the cast, found " + uid)
}

// put renders the control message that saves the model. Its schedule counts from start, so that a demo looks the same
// whenever it is started. edition tells two saves of the same model apart.
func (r role) put(site string, start time.Time, edition int) string {
	message := map[string]any{
		"type":    "put",
		"uid":     r.uid,
		"payload": map[string]any{"input_url": fmt.Sprintf("%s%s?edition=%d", site, r.path, edition)},
		"policy":  map[string]any{"timeout": r.timeout, "retries": []string{"0", "1s"}, "on_exhausted": string(r.exhausted())},
		"refresh": string(model.RefreshNow),
	}
	if r.planned {
		message["refresh"] = string(model.RefreshPlanned)
	}
	if r.every > 0 {
		message["rrule"] = fmt.Sprintf("FREQ=SECONDLY;INTERVAL=%d", r.every)
		message["dtstart"] = start.UTC().Format("2006-01-02T15:04:05")
	}
	return encode(message)
}

func (r role) exhausted() policy.OnExhausted {
	if r.giveUp {
		return policy.GiveUp
	}
	return policy.NextPlanned
}

func runMessage(uid string) string {
	return encode(map[string]any{"type": "run", "uid": uid})
}

// successMessage is what a worker says of an attempt, whether it may or not.
func successMessage(uid, attemptUID string) string {
	return encode(map[string]any{"type": "success", "big_table_uid": uid, "refresh_attempt_uid": attemptUID})
}

func encode(message map[string]any) string {
	text, err := json.Marshal(message)
	if err != nil {
		panic(fmt.Sprintf("marshal message: %v", err)) // texts and numbers only
	}
	return string(text)
}
