package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// bulkName begins the name of whoever begins bulks. Each is another one, so that the journal tells which bulk has started a model.
const bulkName = "bulk "

// beginBulk does what `refreshd model run -l` does.
func (o *operatorRole) beginBulk(ctx context.Context) error {
	texts := []string{"", "policy=" + sharedPolicy, "status=failing", "status!=running", "uid=m?"}
	selector, err := model.ParseSelector(texts[o.rng.IntN(len(texts))])
	if err != nil {
		return err
	}
	rate, err := model.ParseBulkRate([]string{"", "", "2/s", "6/m"}[o.rng.IntN(4)])
	if err != nil {
		return err
	}
	*o.bulks++
	id := fmt.Sprint("run-", *o.bulks)
	_, err = o.server.store.Fleet().BeginBulk(ctx, id, model.Bulk{Action: model.BulkRun, Selector: selector, Rate: rate, By: bulkName + id})
	return err
}

// bulkRun is what a bulk decides about a model.
func (p *replay) bulkRun(m *model.Model, at time.Time, entry map[string]string) (model.Decision, error) {
	if m == nil {
		return model.Decision{}, errors.New("the model does not exist")
	}
	decision, outcome, err := m.Execute(&model.Command{Type: model.CommandRun, UID: m.UID, By: entry["by"]}, model.Policies{}, true, at)
	decision.Next.Trigger = model.TriggerHand
	if err != nil || outcome != model.Applied {
		return decision, fmt.Errorf("it is refused: %s, %w", outcome, err)
	}
	return decision, nil
}

// said are the events that tell of a wish about a model: behind one of them, a bulk may start it again.
func said(entry map[string]string) bool {
	switch model.Event(entry["event"]) {
	case model.EventCreate, model.EventUpdate, model.EventRun, model.EventEnable, model.EventDisable, model.EventRemove, model.EventImport:
		return true
	}
	return false
}

// passBulks goes through the journal: it returns which models a bulk has started, and an error if one has started a model twice.
func (p *replay) passBulks() (bulks map[string]string, err error) {
	if bulks = maps.Clone(p.oracle.bulks); bulks == nil {
		bulks = map[string]string{}
	}
	for _, entry := range p.after.journal {
		uid, by := entry["uid"], entry["by"]
		switch ran := entry["event"] == string(model.EventRun) && strings.HasPrefix(by, bulkName); {
		case ran && bulks[uid] == by:
			err = errors.Join(err, fmt.Errorf("%s has started %s twice", by, uid))
		case ran:
			bulks[uid] = by
		case said(entry):
			delete(bulks, uid)
		}
	}
	return bulks, err
}

// checkBulk checks that no bulk has started a model twice.
func (p *replay) checkBulk() error {
	_, err := p.passBulks()
	return err
}

func (p *replay) noteBulk() { p.oracle.bulks, _ = p.passBulks() }
