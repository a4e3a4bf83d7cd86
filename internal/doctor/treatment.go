package doctor

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// patient is a model with what is wrong with it.
type patient struct {
	checkup  *scripts.Inspection
	findings []Finding
}

// curable are what --repair does. A finding with another repair is left.
var curable = []string{mendSets, mendRev, mendRest}

func (p patient) curable() bool {
	return slices.ContainsFunc(p.findings, func(f Finding) bool { return slices.Contains(curable, f.Repair) })
}

// transition is what mends the model, if nobody changes it meanwhile.
func (p patient) transition(now time.Time) *scripts.Transition {
	if !p.checkup.Record.Exists {
		return scripts.OrphanEnd(p.checkup.Record.UID)
	}
	return p.checkup.Mend(now)
}

// treat mends patients, if that is wanted, and tells all that was found.
func (e *examination) treat(ctx context.Context, sick []patient) error {
	var mending []patient
	batch := scripts.Batch{Now: e.now}
	for _, p := range sick {
		switch {
		case !e.options.Repair || !p.curable():
		case e.broken:
			p.leave(wrongKey)
		default:
			mending, batch.Items = append(mending, p), append(batch.Items, scripts.Item{Transition: p.transition(e.now)})
		}
	}
	codes, err := e.store.Commit(ctx, batch)
	if err != nil {
		return err
	}
	for i, code := range codes {
		mending[i].conclude(code)
	}
	for _, p := range sick {
		for _, f := range p.findings {
			e.note(f)
		}
	}
	return nil
}

// wrongKey is why nothing is mended while the scripts refuse to write.
const wrongKey = "a key of the queue has the wrong type"

// conclude notes what became of the repair.
func (p patient) conclude(code scripts.Code) {
	if code != scripts.CodeApplied {
		p.leave("it changed while it was mended (" + code.String() + "); run --repair again")
		return
	}
	done := map[string]string{
		mendSets: "mended: due and running set written anew", mendRev: "mended: it has one now", mendRest: "mended: removed",
	}
	for i := range p.findings {
		if f := &p.findings[i]; slices.Contains(curable, f.Repair) {
			f.Repair, f.Mended = done[f.Repair], true
		}
	}
}

// leave notes why the model was not mended.
func (p patient) leave(because string) {
	for i := range p.findings {
		if f := &p.findings[i]; slices.Contains(curable, f.Repair) {
			f.Repair = "left: " + because
		}
	}
}

// score renders a score of a set for people.
func score(ms float64) string {
	if ms == float64(int64(ms)) && ms >= 0 && ms < 253402300800000 {
		return model.FormatTime(time.UnixMilli(int64(ms)))
	}
	return strconv.FormatFloat(ms, 'g', -1, 64)
}
