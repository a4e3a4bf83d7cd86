package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// sharedPolicy is stored under a name in some worlds: its rule changes now and then.
const sharedPolicy = "shared"

// shared is that policy with its nth rule. No two of them that follow each other are alike.
func shared(n int) policy.Policy {
	p := policy.Default()
	p.Name, p.Timeout, p.Retries = sharedPolicy, time.Minute, policy.Delays{time.Minute, policy.UntilPlanned}
	p.Rule = fmt.Sprintf("FREQ=%s;BYSECOND=%d", []string{"YEARLY", "MINUTELY", "HOURLY", "DAILY"}[n%4], n%60)
	return p
}

func sharedText(n int) string {
	text, err := json.Marshal(shared(n))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// sharingCommands save a model that uses it.
var sharingCommands = []string{
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":"shared"}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":"shared","refresh":"now"}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":"shared","refresh":"planned"}`,
}

// rulesOf counts the rules of the shared policy; nil: the world has none.
func (w *world) rulesOf() *int {
	if !w.temper.rules {
		return nil
	}
	return &w.rules
}

// changeRule does what `refreshd policy put` does.
func (o *operatorRole) changeRule(ctx context.Context) error {
	*o.rules++
	return o.server.store.Fleet().PutPolicy(ctx, shared(*o.rules))
}

// replan is what a walk decides about a model.
func (p *replay) replan(m *model.Model, at time.Time) (model.Decision, error) {
	if m == nil {
		return model.Decision{}, errors.New("the model does not exist")
	}
	decision, outcome := m.Replan(at)
	if outcome != model.Applied {
		return decision, errors.New("it is planned as its policy says")
	}
	return decision, nil
}

// noteRule begins to wait for a walk where the shared policy has changed, and leaves out what was decided since.
func (p *replay) noteRule() {
	if p.before.policies[sharedPolicy] != p.after.policies[sharedPolicy] {
		p.oracle.waiting = map[string]bool{}
		for uid := range p.after.models {
			p.oracle.waiting[uid] = true
		}
	}
	for _, entry := range p.after.journal {
		delete(p.oracle.waiting, entry["uid"])
	}
}

// checkWalk checks that a change is noted for a walk in the same step, and that a walk that is over has forgotten no model.
func (p *replay) checkWalk() error {
	was, is := p.before.replanning, p.after.replanning
	switch {
	case p.before.policies[sharedPolicy] != p.after.policies[sharedPolicy] && !is:
		return errors.New("the shared policy has changed, and nobody will walk for it")
	case !was || is:
		return nil
	}
	for uid := range p.oracle.waiting {
		hash, found := p.after.models[uid]
		if !found || hash["policy"] != sharedPolicy {
			continue
		}
		m := parse(uid, hash, p.after.payloads[uid])
		if err := m.Resolve(p.compiled(p.after.policies[sharedPolicy]), p.schedules.Get); err != nil {
			return err
		}
		if decision, outcome := m.Replan(p.now); outcome == model.Applied {
			return fmt.Errorf("the walk is over, and %s still waits for %v instead of %v", uid, m.RefreshAt, decision.Next.RefreshAt)
		}
	}
	return nil
}
