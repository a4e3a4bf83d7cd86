package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
)

// checkIndexes checks that the sets beside the models match their hashes.
func (s *snapshot) checkIndexes(steers bool) {
	want := steered{
		failing: map[string]float64{}, disabled: map[string]float64{}, parked: map[string]float64{},
		ages: map[string]float64{}, late: map[string]float64{}, stale: map[string]float64{}, errors: map[string]float64{},
		parkedBy: map[string]map[string]float64{}, labels: map[string][]string{},
	}
	for _, uid := range slices.Sorted(maps.Keys(s.models)) {
		m := parse(uid, s.models[uid], "")
		if !m.FailingSince.IsZero() {
			want.failing[uid] = float64(m.FailingSince.UnixMilli())
		}
		if m.Disabled {
			want.disabled[uid] = float64(m.DisabledAt.UnixMilli())
		}
		if m.Parked() {
			at, blocker := float64(m.RefreshAt.UnixMilli()), string(m.ParkedBy)
			want.parked[uid] = at
			if want.parkedBy[blocker] == nil {
				want.parkedBy[blocker] = map[string]float64{}
			}
			want.parkedBy[blocker][uid] = at
		}
		want.growOld(m)
		if m.FingerprintID != "" {
			want.errors[m.FingerprintID]++
		}
		for _, term := range model.LabelTerms(model.AllLabels(m)) {
			want.labels[term] = append(want.labels[term], uid)
		}
	}
	for blocker := range want.parkedBy {
		_, known := s.blockers[blocker]
		failIf(!known, "%v wait for the blocker %s, and nobody will look at it", want.parkedBy[blocker], blocker)
	}
	for name, state := range s.circuits {
		_, known := s.blockers[string(model.NewBlocker(model.BlockerCircuit, name))]
		failIf(state["opened_at"] != "" && !known, "the circuit of %s is open, and people are not told: %v", name, s.blockers)
	}
	pairs := [][3]any{{"failing", want.failing, s.failing}, {"disabled", want.disabled, s.disabled}, {"parked", want.parked, s.parked},
		{"parked by blocker", want.parkedBy, s.parkedBy}, {"stale_at", want.ages, s.ages}, {"late", want.late, s.late}, {"stale", want.stale, s.stale}, {"errors", want.errors, s.errors}}
	if steers {
		pairs = append(pairs, [3]any{"labels", want.labels, s.labels})
	}
	for _, pair := range pairs {
		models, index := fmt.Sprint(pair[1]), fmt.Sprint(pair[2])
		failIf(models != index, "in the index %s stands %s, the models say %s", pair[0], index, models)
	}
}

// checkKeys checks that each key counts the running attempts that say so, and nothing else.
func (s *snapshot) checkKeys() {
	counted := map[string]map[string]float64{}
	for uid, hash := range s.models {
		m := parse(uid, hash, "")
		failIf(m.Counted != "" && !m.Running(), "%s does not run, and is counted by %s", uid, m.Counted)
		for _, name := range model.CountedBy(m.Counted, model.BlockerLimit) {
			if counted[name] == nil {
				counted[name] = map[string]float64{}
			}
			counted[name][uid] = float64(m.DeadlineAt.UnixMilli())
		}
	}
	for _, name := range keyNames {
		is := maps.Clone(s.keys[name])
		for uid, deadline := range counted[name] {
			got, found := is[uid]
			failIf(!found || got != deadline, "the key %s counts %s until %s%v, want until %v", name, uid, digits(int(got)), found, deadline)
			delete(is, uid)
		}
		failIf(len(is) > 0, "the key %s counts what does not run: %v", name, is)
	}
	s.checkProbes()
}

// checkProbes checks that each probe is a running attempt that its circuit counts: only the end of that settles it.
func (s *snapshot) checkProbes() {
	for name, state := range s.circuits {
		probe := state["probe"]
		if probe == "" {
			continue
		}
		counted := strings.Fields(s.models[probe]["counted_by"])
		switch {
		case state["opened_at"] == "":
			fail("%s tries the circuit of %s, which is closed", probe, name)
		case !slices.Contains(counted, string(model.NewBlocker(model.BlockerCircuit, name))):
			fail("%s is to try the circuit of %s, but it is no running model of that: %v", probe, name, s.models[probe])
		}
	}
}

// With few fingerprints, other failures are sorted under other: mostErrors is the mark of that line.
const (
	mostErrors = "most errors"
	fewErrors  = 1
	manyErrors = 1000
)

func (d *deed) most() int {
	if d.few {
		return fewErrors
	}
	return manyErrors
}

// sort completes a decision with the fingerprint that its model is failing by from now on: new ones are kept apart as long as there is room.
func (p *replay) sort(m *model.Model, decision *model.Decision) {
	was, is := "", decision.Next.FingerprintID
	if m != nil {
		was = m.FingerprintID
	}
	if decision.Event == model.EventRemove {
		is = ""
	}
	p.checkFingerprint(m, decision)
	if p.failing == nil {
		p.failing = map[string]float64{}
		maps.Copy(p.failing, p.before.errors)
	}
	if is != "" && (is != was || decision.Fingerprint != "") {
		if _, known := p.failing[is]; is != was && !known && len(p.failing) >= p.most() {
			is = fingerprint.Other
		}
		decision.Next.FingerprintID = is
		p.failures[is]++
	}
	if was == is {
		return
	}
	if is != "" {
		p.failing[is]++
	}
	if p.failing[was]--; p.failing[was] <= 0 {
		delete(p.failing, was)
		p.recovered[was] = true
	}
}

// checkFingerprint checks that a failure counts for the fingerprint that its worker has named, and for none if the model is wanted again.
func (p *replay) checkFingerprint(m *model.Model, decision *model.Decision) {
	if decision.Event != model.EventFailure && decision.Event != model.EventTimeout {
		return
	}
	want := fingerprint.Of(m.UID, "timeout", "timeout")
	if expires(fields(m)).Before(m.DeadlineAt) {
		want = fingerprint.Of(m.UID, "silent", "silent for "+fields(m)["silent_after"])
	}
	switch {
	case m.Again:
		want = ""
	case p.message != nil && p.message.Type == model.MessageFailure:
		want = fingerprint.Of(m.UID, p.message.ErrorType, p.message.Reason)
	case p.message != nil:
		return // it was deferred once too often
	case m.Held():
		want = fingerprint.Of(m.UID, policy.ReasonSuspect, decision.Ended.Reason)
	}
	failIf(decision.Fingerprint != want || m.Again && decision.Next.FingerprintID != m.FingerprintID,
		"the failure counts for %q, want %q", decision.Fingerprint, want)
}

// checkFingerprints checks that it is known how many models began and ceased to fail by each fingerprint, and how often.
func (p *replay) checkFingerprints() {
	kept := len(p.after.errors)
	failIf(kept > p.most()+1, "%d fingerprints are kept: %v", kept, p.after.errors)
	for _, id := range slices.Sorted(maps.Keys(p.after.fingerprints)) {
		is, was := p.after.fingerprints[id], p.before.fingerprints[id]
		models, text := int(p.after.errors[id]), fingerprint.Text(is["signature"])
		switch {
		case count(is["began"])-count(is["ended"]) != models:
			fail("%d models are failing by %s, began and ended: %v", models, id, is)
		case !p.recovered[id] && count(is["failures"]) != count(was["failures"])+p.failures[id]:
			fail("%s has %s failures, %s before, and %d were told", id, is["failures"], was["failures"], p.failures[id])
		case text != "" && id != fingerprint.Other && text.ID() != id:
			fail("%s is told to be %q", id, text)
		case len(strings.Fields(is["uids"])) > 3:
			fail("of %s are named %q", id, is["uids"])
		}
	}
}

// fields states what the hash of a model holds, apart from its revision and what a worker said for the owner to see.
func fields(m *model.Model) map[string]string {
	hash := map[string]string{
		"refresh_at": model.FormatTime(m.RefreshAt), "refresh_why": m.Why,
		"refresh_for": string(m.Trigger), "planned_for": model.FormatTime(m.PlannedFor), "not_before": model.FormatTime(m.NotBefore),
		"reserved": m.Reserved, "counted_by": m.Counted,
		"parked_by": string(m.ParkedBy), "parked_since": model.FormatTime(m.ParkedSince),
		"attempt_uid": m.AttemptUID, "attempt_no": digits(m.AttemptNo),
		"started_at": model.FormatTime(m.StartedAt), "deadline_at": model.FormatTime(m.DeadlineAt),
		"entry_deadline_at": model.FormatTime(m.EntryDeadlineAt),
		"ticket":            digits(m.Ticket), "taken_at": model.FormatTime(m.TakenAt),
		"processing_at": model.FormatTime(m.ProcessingAt), "worker": m.Worker, "heard_at": model.FormatTime(m.HeardAt), "again": one(m.Again), "outdated": one(m.Outdated),
		"unpublished": one(m.Unpublished), "usual": m.Usual, "guarded": one(m.Guarded),
		"refresh_disabled_until_update": one(m.Disabled), "refresh_disabled_user_friendly_reason": m.DisabledReason,
		"refresh_disabled_by": string(m.DisabledBy), "refresh_disabled_who": m.DisabledWho,
		"refresh_disabled_at": model.FormatTime(m.DisabledAt),
		"last_success_at":     model.FormatTime(m.LastSuccessAt), "failing_since": model.FormatTime(m.FailingSince), "error": m.FingerprintID,
		"final_failure_at": model.FormatTime(m.FinalFailureAt), "last_attempt_uid": m.LastAttemptUID,
		"deferrals": digits(m.Deferrals), "deaths": digits(m.Deaths), "trying_since": model.FormatTime(m.TryingSince),
		"freshness": string(m.Freshness), "stale_at": model.FormatTime(m.StaleAt), "fresh_since": model.FormatTime(m.FreshSince),
		"total_retries": digits(m.TotalRetries), "successful_retries": digits(m.SuccessfulRetries), "retried_cycles": digits(m.RetriedCycles),
		"rrule": m.Rule, "timezone": m.Timezone, "dtstart": m.Dtstart, "policy": m.PolicyName,
	}
	if m.SilentAfter > 0 {
		hash["silent_after"] = document.FormatDuration(m.SilentAfter)
	}
	if m.EntryDeadlineAt.Equal(m.DeadlineAt) {
		hash["entry_deadline_at"] = ""
	}
	if !m.EntryDueAt.IsZero() {
		hash["entry_times"] = strings.TrimSpace(model.FormatTime(m.EntryDueAt) + " " + model.FormatTime(m.EntryPlannedAt))
	}
	if m.Fence > impliedFence(m.StartedAt, m.LastSuccessAt) {
		hash["fence"] = digits(int(m.Fence))
	}
	for name, value := range m.Labels {
		hash[labelPrefix+name] = value
	}
	if m.Host != "" {
		hash[labelPrefix+"host"] = m.Host
	}
	maps.DeleteFunc(hash, func(_, value string) bool { return value == "" })
	return hash
}

func lengthOf(text string) time.Duration {
	length, _ := document.ParseDuration(text)
	return length
}

// told are the fields that a status message sets; no transition is decided on them.
var told = []string{"user_friendly_status", "progress"}

// parse reads back what fields states.
func parse(uid string, hash map[string]string, payload string) *model.Model {
	labels := map[string]string{}
	due, planned, _ := strings.Cut(hash["entry_times"], " ")
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
			EntryDeadlineAt: instant(cmp.Or(hash["entry_deadline_at"], hash["deadline_at"])), EntryPlannedAt: instant(planned),
			EntryDueAt: instant(due), Fence: fenceOf(hash),
			Ticket: count(hash["ticket"]), TakenAt: instant(hash["taken_at"]),
			ProcessingAt: instant(hash["processing_at"]), Worker: hash["worker"], HeardAt: instant(hash["heard_at"]), SilentAfter: lengthOf(hash["silent_after"]), Again: hash["again"] != "", Outdated: hash["outdated"] != "",
			Unpublished: hash["unpublished"] != "", Usual: hash["usual"], Guarded: hash["guarded"] != "",
			Disabled: hash["refresh_disabled_until_update"] != "", DisabledReason: hash["refresh_disabled_user_friendly_reason"],
			DisabledBy: model.Stopper(hash["refresh_disabled_by"]), DisabledWho: hash["refresh_disabled_who"],
			DisabledAt:    instant(hash["refresh_disabled_at"]),
			LastSuccessAt: instant(hash["last_success_at"]), FailingSince: instant(hash["failing_since"]), FingerprintID: hash["error"],
			FinalFailureAt: instant(hash["final_failure_at"]), LastAttemptUID: hash["last_attempt_uid"],
			Deferrals: count(hash["deferrals"]), Deaths: count(hash["deaths"]), TryingSince: instant(hash["trying_since"]),
			UserFriendlyStatus: hash["user_friendly_status"], Progress: count(hash["progress"]),
			Freshness: model.Freshness(hash["freshness"]), StaleAt: instant(hash["stale_at"]), FreshSince: instant(hash["fresh_since"]),
			TotalRetries: count(hash["total_retries"]), SuccessfulRetries: count(hash["successful_retries"]), RetriedCycles: count(hash["retried_cycles"]),
		},
	}
}

// fenceOf is the fence in a hash: its own field, or else when the attempt started or the model succeeded last.
func fenceOf(hash map[string]string) int64 {
	return cmp.Or(int64(count(hash["fence"])), impliedFence(instant(hash["started_at"]), instant(hash["last_success_at"])))
}

func impliedFence(started, succeeded time.Time) int64 {
	if at := cmp.Or(started, succeeded); !at.IsZero() {
		return at.UnixMilli()
	}
	return 0
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
