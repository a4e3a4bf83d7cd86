package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// maxSilence is after how long the owner of a list should have been missed by others, whatever their lease.
const maxSilence = time.Minute

// holdings are lists that each belong to one process.
type holdings struct {
	list  string // its name in codes
	owner string // what its owner is
	key   func(owner string) string
	read  func(ctx context.Context, owner string) (scripts.OwnedList, error)
	// mend makes sure that what stands in a list without an owner is looked at.
	mend                 func(ctx context.Context, owner string) error
	repairing, afterward string
}

// claimed checks the lists of pollers: what stands in one that nobody knows of is applied by nobody.
func (e *examination) claimed(ctx context.Context, owners []string) error {
	return e.holdings(ctx, owners, holdings{
		"claimed", "poller", e.store.Keys.Claimed, e.store.ClaimedBy, e.store.AddExpiredPoller,
		"--repair lists it again, and the next poller takes over its messages", "mended: listed again; the next poller takes over its messages",
	})
}

// taken checks the lists of worker pools: what stands in one that nobody knows of is worked on by nobody.
func (e *examination) taken(ctx context.Context, owners []string) error {
	return e.holdings(ctx, owners, holdings{
		"taken", "worker pool", e.store.Keys.Taken, e.store.TakenBy,
		func(ctx context.Context, owner string) error { _, err := e.store.Leave(ctx, owner); return err },
		"--repair hands its attempts back", "mended: attempts that still count are handed back",
	})
}

func (e *examination) holdings(ctx context.Context, owners []string, h holdings) error {
	for _, owner := range owners {
		holding, err := h.read(ctx, owner)
		if err != nil {
			return err
		}
		silent := e.now.Sub(holding.LastHeartbeat)
		f := Finding{Where: h.key(owner), Found: fmt.Sprintf("%d entries of an owner that is not known", holding.Entries)}
		switch {
		case holding.Entries == 0:
			continue
		case !holding.Known:
			f.Severity, f.Code, f.Want, f.Repair = Error, h.list+"-orphan", "a "+h.owner+" that gives signs of life", h.repairing
		case silent > maxSilence:
			f.Severity, f.Code, f.Want = Warning, h.list+"-silent", "a sign of life within "+maxSilence.String()+", or another "+h.owner+" that takes over"
			f.Found = fmt.Sprintf("%d entries of an owner silent since %s", holding.Entries, model.FormatTime(holding.LastHeartbeat))
			f.Repair = byHand("start a " + h.owner + ": it takes over by itself")
		default:
			continue
		}
		if err := e.attend(f, !holding.Known, h.afterward, func() error { return h.mend(ctx, owner) }); err != nil {
			return err
		}
	}
	return nil
}

// attend tells a finding, and mends it before if that is wanted and safe.
func (e *examination) attend(f Finding, curable bool, afterward string, mend func() error) error {
	switch {
	case !curable || !e.options.Repair:
	case e.broken:
		f.Repair = "left: " + wrongKey
	default:
		if err := mend(); err != nil {
			return err
		}
		f.Mended, f.Repair = true, afterward
	}
	e.note(f)
	return nil
}
