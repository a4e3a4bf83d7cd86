package simulation

import (
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
)

// Where few signatures are kept apart, a failure by another one is sorted under other: mostErrors is the mark of the line that says so.
const (
	mostErrors = "most errors"
	fewErrors  = 1
	manyErrors = 1000
)

// most is how many signatures are kept apart.
func (d *deed) most() int {
	if d.few {
		return fewErrors
	}
	return manyErrors
}

// sort completes a decision with the cause by which its model is failing from now on: what is new is told apart as long as there is room.
func (p *replay) sort(m *model.Model, decision *model.Decision) {
	was, is := "", decision.Next.FingerprintID
	if m != nil {
		was = m.FingerprintID
	}
	if decision.Event == model.EventRemove {
		is = ""
	}
	p.checkCause(m, decision)
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

// checkCause checks that a failure counts for the cause that its worker has named, and for none if the model is wanted again.
func (p *replay) checkCause(m *model.Model, decision *model.Decision) {
	if decision.Event != model.EventFailure && decision.Event != model.EventTimeout {
		return
	}
	want := fingerprint.Of(m.UID, policy.TimedOut().ErrorType, policy.TimedOut().Reason)
	switch {
	case m.Again:
		want = ""
	case p.message != nil && p.message.Type == model.MessageFailure:
		want = fingerprint.Of(m.UID, p.message.ErrorType, p.message.Reason)
	case p.message != nil:
		return // it was deferred once too often
	}
	failIf(decision.Fingerprint != want || m.Again && decision.Next.FingerprintID != m.FingerprintID,
		"the failure counts for %q, want %q", decision.Fingerprint, want)
}

// checkCauses checks that of each cause is known how many models began and ceased to fail by it, and how often.
func (p *replay) checkCauses() {
	apart := len(p.after.errors)
	failIf(apart > p.most()+1, "%d signatures are kept apart: %v", apart, p.after.errors)
	for _, id := range slices.Sorted(maps.Keys(p.after.causes)) {
		is, was := p.after.causes[id], p.before.causes[id]
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
