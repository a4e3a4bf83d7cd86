package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// occasion is one transition as the reference sees it: the fields of the model before, what it is to become, and the message that
// asked for it.
type occasion struct {
	uid, event string
	before     hash
	after      hash // of a model that goes: nil
	next       *model.State
	message    map[string]any
	at         time.Time
}

func (t *Transition) occasion(before hash, message Claimed, now time.Time) *occasion {
	o := &occasion{uid: t.uid, event: string(t.decision.Event), before: before, next: &t.decision.Next, at: now}
	if message.Entry != "" {
		_ = json.Unmarshal([]byte(message.Raw()), &o.message)
	}
	return o
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

func (o *occasion) is(events ...string) bool { return slices.Contains(events, o.event) }

// ended reports whether the attempt that ran is over, and stands in the history.
func (o *occasion) ended() bool {
	return o.before["attempt_uid"] != "" && o.next.AttemptUID != o.before["attempt_uid"] && !o.is("withdrawn", "remove", "orphan")
}

// final reports whether the model was disabled by a failure.
func (o *occasion) final() bool {
	return o.next.Disabled && o.before["refresh_disabled_until_update"] == "" && o.is("failure", "timeout")
}

func (o *occasion) recovered() bool { return o.is("success") && o.before["final_failure_at"] != "" }

// number is that of the attempt, if its end counts.
func (o *occasion) number() int {
	no, _ := strconv.Atoi(o.before["attempt_no"])
	if !o.is("success", "failure", "timeout") {
		return 0
	}
	return no
}

// counters lists what is counted.
func (o *occasion) counters() (names []string) {
	deadline, _ := time.Parse(time.RFC3339, o.before["deadline_at"])
	no := o.number()
	for _, counter := range []struct {
		name   string
		counts bool
	}{
		{o.event, o.event != "mend"},
		{"retry", o.is("start") && o.next.AttemptNo > 1},
		{"success_unchanged", o.is("success") && o.message["changed"] == false},
		{"exhausted", o.is("failure", "timeout") && strings.Contains(o.next.Why, "exhausted")},
		{"final_failure", o.final()},
		{"recovered", o.recovered()},
		{"fresh_again", (o.next.Freshness == "fresh" || o.next.Freshness == "never") && (o.before["freshness"] == "late" || o.before["freshness"] == "stale")},
		{"late", o.message["refresh_attempt_uid"] != nil && !o.is("status") && o.at.After(deadline)},
		{"total_retries", no > 1},
		{"successful_retries", no > 1 && o.is("success")},
		{"retried_cycles", no == 2},
	} {
		if counter.counts {
			names = append(names, counter.name)
		}
	}
	return names
}

// journal is the entry of the journal; nil: none.
func (o *occasion) journal() map[string]any {
	if o.is("status", "mend") {
		return nil
	}
	entry := map[string]any{"uid": o.uid, "event": o.event, "at": stamp(o.at)}
	if o.ended() || o.is("withdrawn") {
		entry["ended_attempt_no"] = o.before["attempt_no"]
	}
	if o.ended() {
		entry["reason"], entry["error_type"], entry["changed"] = o.message["reason"], o.message["error_type"], ""
		switch {
		case o.is("timeout"), o.is("outdated") && o.message == nil: // by its deadline
			entry["reason"], entry["error_type"] = "timeout", "timeout"
		case o.is("run"):
			entry["reason"], entry["ended_attempt_uid"] = "superseded: run by hand", o.before["attempt_uid"]
		case o.is("disable"):
			entry["reason"], entry["ended_attempt_uid"] = "superseded: disabled by hand", o.before["attempt_uid"]
		}
		if changed, told := o.message["changed"]; told {
			entry["changed"] = fmt.Sprint(changed)
		}
	}
	if o.final() {
		entry["final"] = "1"
	}
	entry["by"] = o.message["by"]
	if was := o.before["freshness"]; was != string(o.next.Freshness) {
		entry["freshness_was"] = was
	}
	for name, value := range entry {
		if value == "" || value == nil || value == "0" {
			delete(entry, name)
		}
	}
	if o.after != nil {
		maps.Copy(entry, told(o.before, o.after))
		failed(entry, o.before, o.after)
	}
	return entry
}

// notice is the entry of the outbox; nil: nobody is told.
func (o *occasion) notice() map[string]any {
	entry := map[string]any{"uid": o.uid, "at": stamp(o.at), "attempt_no": o.before["attempt_no"]}
	switch {
	case o.final():
		entry["event"], entry["reason"], entry["refresh_why"] = "disabled", o.next.DisabledReason, o.next.Why
	case o.recovered():
		entry["event"] = "recovered"
	case o.is("became_stale"):
		no := strconv.Itoa(o.next.AttemptNo)
		entry["event"], entry["attempt_no"] = "stale", no
		if last := o.before["last_success_at"]; last != "" {
			entry["last_success_at"] = last
		}
	default:
		return nil
	}
	return entry
}

// freshNotice is the entry of the outbox about a stale model that is fresh again; nil: it is none.
func (o *occasion) freshNotice() map[string]any {
	if o.before["freshness"] != "stale" || o.next.Freshness != "fresh" && o.next.Freshness != "never" {
		return nil
	}
	no := o.before["attempt_no"]
	if !o.ended() {
		no = strconv.Itoa(o.next.AttemptNo)
	}
	return map[string]any{"event": "fresh", "uid": o.uid, "at": stamp(o.at), "attempt_no": no}
}

// rejection is the entry of the rejected list about a claimed message; empty: it is only counted.
func rejection(item Item, at time.Time) string {
	if item.Reason == "" {
		return ""
	}
	source := map[byte]string{'n': "control", 'o': "output"}[item.Message.Entry[0]]
	raw, _ := json.Marshal(item.Message.Raw())
	uid := ""
	if item.UID != "" {
		uid = fmt.Sprintf(`"uid":%q,`, item.UID)
	}
	return fmt.Sprintf(`{"at":%q,"source":%q,%s"reason":%q,"raw":%s}`, stamp(at), source, uid, item.Reason, raw)
}
