package simulation

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// fields states what the hash of a model holds, apart from its revision and what a worker said for the owner to see.
func fields(m *model.Model) map[string]string {
	hash := map[string]string{
		"refresh_at": model.FormatTime(m.RefreshAt), "refresh_why": m.Why,
		"refresh_for": string(m.Trigger), "planned_for": model.FormatTime(m.PlannedFor), "not_before": model.FormatTime(m.NotBefore),
		"reserved": m.Reserved, "counted_by": m.Counted,
		"parked_by": string(m.ParkedBy), "parked_since": model.FormatTime(m.ParkedSince),
		"attempt_uid": m.AttemptUID, "attempt_no": digits(m.AttemptNo),
		"started_at": model.FormatTime(m.StartedAt), "deadline_at": model.FormatTime(m.DeadlineAt),
		"entry_deadline_at": model.FormatTime(m.EntryDeadlineAt), "entry_planned_at": model.FormatTime(m.EntryPlannedAt),
		"ticket": digits(m.Ticket), "taken_at": model.FormatTime(m.TakenAt),
		"processing_at": model.FormatTime(m.ProcessingAt), "worker": m.Worker, "again": one(m.Again), "outdated": one(m.Outdated),
		"refresh_disabled_until_update": one(m.Disabled), "refresh_disabled_user_friendly_reason": m.DisabledReason,
		"refresh_disabled_by": string(m.DisabledBy), "refresh_disabled_who": m.DisabledWho,
		"refresh_disabled_at": model.FormatTime(m.DisabledAt),
		"last_success_at":     model.FormatTime(m.LastSuccessAt), "failing_since": model.FormatTime(m.FailingSince), "error": m.FingerprintID,
		"final_failure_at": model.FormatTime(m.FinalFailureAt), "last_attempt_uid": m.LastAttemptUID,
		"deferrals": digits(m.Deferrals), "trying_since": model.FormatTime(m.TryingSince),
		"freshness": string(m.Freshness), "stale_at": model.FormatTime(m.StaleAt), "fresh_since": model.FormatTime(m.FreshSince),
		"total_retries": digits(m.TotalRetries), "successful_retries": digits(m.SuccessfulRetries), "retried_cycles": digits(m.RetriedCycles),
		"rrule": m.Rule, "timezone": m.Timezone, "dtstart": m.Dtstart, "policy": m.PolicyName,
	}
	if m.EntryDeadlineAt.Equal(m.DeadlineAt) {
		hash["entry_deadline_at"] = ""
	}
	for name, value := range m.Labels {
		hash[labelPrefix+name] = value
	}
	maps.DeleteFunc(hash, func(_, value string) bool { return value == "" })
	return hash
}

// told are the fields that a status message sets; no transition is decided on them.
var told = []string{"user_friendly_status", "progress"}

// parse reads back what fields states.
func parse(uid string, hash map[string]string, payload string) *model.Model {
	labels := map[string]string{}
	for name, value := range hash {
		if label, is := strings.CutPrefix(name, labelPrefix); is {
			labels[label] = value
		}
	}
	return &model.Model{
		UID: uid, Payload: payload, Rule: hash["rrule"], Timezone: hash["timezone"], Dtstart: hash["dtstart"], PolicyName: hash["policy"], Labels: labels,
		State: model.State{
			RefreshAt: instant(hash["refresh_at"]), Why: hash["refresh_why"],
			Trigger: model.Trigger(hash["refresh_for"]), PlannedFor: instant(hash["planned_for"]), NotBefore: instant(hash["not_before"]),
			Reserved: hash["reserved"], Counted: hash["counted_by"], ParkedBy: model.Blocker(hash["parked_by"]), ParkedSince: instant(hash["parked_since"]),
			AttemptUID: hash["attempt_uid"], AttemptNo: count(hash["attempt_no"]),
			StartedAt: instant(hash["started_at"]), DeadlineAt: instant(hash["deadline_at"]),
			EntryDeadlineAt: instant(cmp.Or(hash["entry_deadline_at"], hash["deadline_at"])), EntryPlannedAt: instant(hash["entry_planned_at"]),
			Ticket: count(hash["ticket"]), TakenAt: instant(hash["taken_at"]),
			ProcessingAt: instant(hash["processing_at"]), Worker: hash["worker"], Again: hash["again"] != "", Outdated: hash["outdated"] != "",
			Disabled: hash["refresh_disabled_until_update"] != "", DisabledReason: hash["refresh_disabled_user_friendly_reason"],
			DisabledBy: model.Stopper(hash["refresh_disabled_by"]), DisabledWho: hash["refresh_disabled_who"],
			DisabledAt:    instant(hash["refresh_disabled_at"]),
			LastSuccessAt: instant(hash["last_success_at"]), FailingSince: instant(hash["failing_since"]), FingerprintID: hash["error"],
			FinalFailureAt: instant(hash["final_failure_at"]), LastAttemptUID: hash["last_attempt_uid"],
			Deferrals: count(hash["deferrals"]), TryingSince: instant(hash["trying_since"]),
			UserFriendlyStatus: hash["user_friendly_status"], Progress: count(hash["progress"]),
			Freshness: model.Freshness(hash["freshness"]), StaleAt: instant(hash["stale_at"]), FreshSince: instant(hash["fresh_since"]),
			TotalRetries: count(hash["total_retries"]), SuccessfulRetries: count(hash["successful_retries"]), RetriedCycles: count(hash["retried_cycles"]),
		},
	}
}

// labelPrefix begins the names of the fields that hold labels.
const labelPrefix = "label:"

func digits(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func one(set bool) string {
	if set {
		return "1"
	}
	return ""
}

func instant(text string) time.Time {
	at, _ := time.Parse(model.TimeLayout, text)
	return at
}

func count(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
