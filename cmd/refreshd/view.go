package main

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// modelView is a model as -o json shows it: every field is always there. A time that is not set is null, a text "".
type modelView struct {
	UID    string       `json:"uid"`
	Status model.Status `json:"status"`

	RefreshAt  time.Time `json:"refresh_at"`
	RefreshWhy string    `json:"refresh_why"`
	RefreshFor string    `json:"refresh_for"`
	NotBefore  time.Time `json:"not_before"`
	PlannedAt  time.Time `json:"planned_at"`
	Phase      string    `json:"phase"`

	ParkedBy    model.Blocker `json:"parked_by"` // what it waits for instead of a time
	ParkedSince time.Time     `json:"parked_since"`
	Reserved    []string      `json:"reserved"`   // keys of which refresh_at is a slot
	CountedBy   []string      `json:"counted_by"` // limits and circuit that count the attempt

	AttemptUID   string    `json:"attempt_uid"`
	AttemptNo    int       `json:"attempt_no"`
	StartedAt    time.Time `json:"started_at"`
	DeadlineAt   time.Time `json:"deadline_at"`
	ProcessingAt time.Time `json:"processing_at"`
	Worker       string    `json:"worker"`
	Again        bool      `json:"again"`
	Outdated     bool      `json:"outdated"`

	Disabled       bool   `json:"refresh_disabled_until_update"`
	DisabledReason string `json:"refresh_disabled_user_friendly_reason"`
	DisabledBy     string `json:"refresh_disabled_by"`
	DisabledWho    string `json:"refresh_disabled_who"`

	UserFriendlyStatus string `json:"user_friendly_status"`
	Progress           int    `json:"progress"`

	LastSuccessAt time.Time `json:"last_success_at"`
	// Freshness is what was told last, StaleAt when that changes next, or since when it is stale.
	Freshness      model.Freshness `json:"freshness"`
	StaleAt        time.Time       `json:"stale_at"`
	FreshSince     time.Time       `json:"fresh_since"`
	FailingSince   time.Time       `json:"failing_since"`
	FinalFailureAt time.Time       `json:"final_failure_at"`
	LastAttemptUID string          `json:"last_attempt_uid"`
	Deferrals      int             `json:"deferrals"`
	TryingSince    time.Time       `json:"trying_since"`
	GivesUpAt      time.Time       `json:"gives_up_at"`

	operate.RetryStats

	Labels   map[string]string `json:"labels"`
	Rule     string            `json:"rrule"`
	Timezone string            `json:"timezone"`
	Dtstart  string            `json:"dtstart"`
	Policy   string            `json:"policy"`
	InForce  policy.Policy     `json:"policy_definition"`
	Payload  json.RawMessage   `json:"payload"`

	Rev   int64  `json:"rev"`
	Fault string `json:"fault"`
	// Rejected is the newest rejected message about the model; ls shows none.
	Rejected *explain.Rejection `json:"rejected"`
}

func viewModel(s explain.Shown) modelView {
	r := s.Record
	rev, _ := strconv.ParseInt(r.Rev(), 10, 64) // 0 tells a person enough about a rev that is no number
	v := modelView{
		UID: r.UID, Status: s.Status,
		RefreshAt: r.RefreshAt, RefreshWhy: r.Why, RefreshFor: refreshFor(r), NotBefore: r.NotBefore, PlannedAt: r.Planned(s.Now),
		Phase:    phaseText(r.Phase),
		ParkedBy: r.ParkedBy, ParkedSince: r.ParkedSince, Reserved: append([]string{}, strings.Fields(r.Reserved)...),
		CountedBy:  append([]string{}, strings.Fields(r.Counted)...),
		AttemptUID: r.AttemptUID, AttemptNo: r.AttemptNo, StartedAt: r.StartedAt, DeadlineAt: r.DeadlineAt,
		ProcessingAt: r.ProcessingAt, Worker: r.Worker, Again: r.Again, Outdated: r.Outdated,
		Disabled: r.Disabled, DisabledReason: r.DisabledReason, DisabledBy: string(r.StoppedBy()), DisabledWho: r.DisabledWho,
		UserFriendlyStatus: r.UserFriendlyStatus, Progress: r.Progress,
		Freshness: r.Freshness, StaleAt: r.StaleAt, FreshSince: r.FreshSince,
		LastSuccessAt: r.LastSuccessAt, FailingSince: r.FailingSince,
		FinalFailureAt: r.FinalFailureAt, LastAttemptUID: r.LastAttemptUID, Deferrals: r.Deferrals,
		TryingSince: r.TryingSince, GivesUpAt: r.GivesUpAt(),
		RetryStats: operate.NewRetryStats(int64(r.TotalRetries), int64(r.SuccessfulRetries), int64(r.RetriedCycles)),
		Labels:     labelsOf(r), Rule: r.Rule, Timezone: r.Timezone, Dtstart: r.Dtstart, Policy: cmp.Or(r.PolicyName, store.DefaultPolicyName), InForce: r.Policy,
		Rev: rev, Fault: r.Fault, Rejected: s.Rejection,
	}
	if json.Valid([]byte(r.Payload)) {
		v.Payload = json.RawMessage(r.Payload)
	}
	return v
}

// labelsOf are the labels of a model, not null where there are none.
func labelsOf(r *store.Record) map[string]string {
	if r.Labels == nil {
		return map[string]string{}
	}
	return r.Labels
}

// phaseText is a phase as it stands in the hash; empty: none.
func phaseText(phase time.Duration) string {
	return mark(phase > 0, document.FormatDuration(phase))
}

// refreshFor is what the next attempt, or the one that runs, is for.
func refreshFor(r *store.Record) string {
	if r.RefreshAt.IsZero() && !r.Running() {
		return ""
	}
	return cmp.Or(string(r.Trigger), "planned")
}

// soleView is one model as -o json shows it alone: with who is missing to go on.
type soleView struct {
	modelView

	Missing *explain.MissingRole `json:"missing"`
}

func viewSole(s explain.Shown) soleView { return soleView{viewModel(s), s.Missing()} }

// pairs is the model for people: what is set, and what it means.
func pairsOf(s explain.Shown) [][2]any {
	v, r := viewModel(s), s.Record
	policy, _ := json.Marshal(v.InForce) // a policy always marshals
	when := func(at time.Time) string { return when(at, s.Now, r.Zone()) }
	return [][2]any{
		{"uid", v.UID}, {"status", s.StatusText()}, {"fault", v.Fault},
		{"refresh at", when(r.RefreshAt)}, {"because", v.RefreshWhy}, {"not before", when(r.NotBefore)}, {"planned at", when(r.Planned(s.Now))},
		{"phase", v.Phase}, {"parked by", string(v.ParkedBy)}, {"parked since", when(r.ParkedSince)},
		{"reserved", strings.Join(v.Reserved, ", ")}, {"counted by", strings.Join(v.CountedBy, ", ")},
		{"attempt", v.AttemptUID}, {"attempt no", mark(v.AttemptNo != 0, strconv.Itoa(v.AttemptNo))}, {"started at", when(r.StartedAt)},
		{"deadline at", when(r.DeadlineAt)}, {"processing at", when(r.ProcessingAt)},
		{"worker", v.Worker}, {"again", mark(v.Again, "saved meanwhile: due again when the attempt ends")},
		{"outdated", mark(v.Outdated, "its payload was replaced: what it reports does not count")},
		{"worker says", v.UserFriendlyStatus}, {"progress", mark(v.Progress != 0, strconv.Itoa(v.Progress)+"%")},
		{"freshness", explain.FreshnessText(&r.Model, when)}, {"last success at", when(r.LastSuccessAt)}, {"failing since", when(r.FailingSince)},
		{"gives up at", when(r.GivesUpAt())}, {"final failure at", when(r.FinalFailureAt)},
		{"retries", v.Summary()},
		{"labels", strings.Join(model.LabelTerms(v.Labels), ", ")}, {"rrule", v.Rule}, {"timezone", v.Timezone}, {"dtstart", v.Dtstart},
		{"policy", v.Policy + " " + string(policy)}, {"payload", string(v.Payload)},
		{"rejected", v.Rejected.Text(when)},
	}
}

// when renders an instant for a person: in UTC, how far away, and on the clock of the model.
func when(at, now time.Time, timezone string) string {
	if at.IsZero() {
		return ""
	}
	text := model.FormatTime(at) + "  " + distance(at, now)
	if zone, err := time.LoadLocation(timezone); err == nil && timezone != "" {
		text += ", " + at.In(zone).Format("Mon 15:04 MST")
	}
	return text
}

// mark is a text that is explain.Shown if something is set.
func mark(set bool, text string) string {
	if !set {
		return ""
	}
	return text
}
