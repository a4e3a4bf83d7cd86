package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// View is a model as it was at one instant.
type View struct {
	Record    *store.Record
	Status    model.Status
	Now       time.Time
	Liveness  *model.Liveness // nil: not read
	Rejection *Rejection      // nil: none, or not read
	Reason    string          // why it is disabled, or failed last; only in lists
	Because   string          // why it waits as it does; likewise

	apart bool // the last failure is shown beside the state, see LastFailure
}

// ReadLiveness reads who serves the queue.
func (s *View) ReadLiveness(ctx context.Context, store *store.Store) error {
	liveness, err := store.Report().Liveness(ctx)
	s.Liveness = &liveness
	return err
}

// ReadModel reads one model that must be stored.
func ReadModel(ctx context.Context, store *store.Store, uid string) (View, error) {
	found, err := ReadModels(ctx, store, []string{uid})
	if err != nil {
		return View{}, err
	}
	if len(found) == 0 {
		return View{}, fmt.Errorf("%s: %w", uid, ErrUnknownModel)
	}
	r, rejected, err := outbox.Of(store).RejectionAbout(ctx, uid)
	if rejected {
		found[0].Rejection = &Rejection{r.ID(), r.At, r.Source, r.Reason}
	}
	return found[0], err
}

// ReadModels reads the models that are stored, in the order of uids.
func ReadModels(ctx context.Context, store *store.Store, uids []string) ([]View, error) {
	now, err := store.Now(ctx)
	if err != nil {
		return nil, err
	}
	records, err := store.Load(ctx, uids)
	if err != nil {
		return nil, err
	}
	if err := store.Report().ExplainBroken(ctx, records); err != nil {
		return nil, err
	}
	var queued map[string]string
	var found []View
	for _, uid := range uids {
		record := records[uid]
		if !record.Exists {
			continue
		}
		if queued == nil && record.Running() {
			if queued, err = store.Queued(ctx); err != nil {
				return nil, err
			}
		}
		_, waiting := queued[record.AttemptUID]
		found = append(found, View{Record: record, Status: record.Status(now, waiting), Now: now})
	}
	return found, nil
}

// ReadReasons adds why failing and disabled models failed last, and why parked ones wait.
func ReadReasons(ctx context.Context, part *store.Store, found []View) error {
	var uids []string
	for _, one := range found {
		if r := one.Record; !r.FailingSince.IsZero() || r.Disabled {
			uids = append(uids, r.UID)
		}
	}
	reasons, err := report.Of(part).LastReasons(ctx, uids)
	var blockers model.Blockers
	if err == nil && slices.ContainsFunc(found, func(one View) bool { return one.Record.Parked() }) {
		blockers, err = part.Fleet().Blockers(ctx)
	}
	for i, one := range found {
		found[i].Because, found[i].Reason = one.because(&blockers), reasons[one.Record.UID]
		if one.Record.Disabled {
			found[i].Reason = cmp.Or(one.Record.DisabledReason, found[i].Reason)
		}
	}
	return err
}

// ReadPast reads one model that must be stored, and its attempts that ended last, newest first.
func ReadPast(ctx context.Context, store *store.Store, uid string) (View, []model.Attempt, error) {
	found, err := ReadModel(ctx, store, uid)
	if err != nil {
		return View{}, nil, err
	}
	attempts, err := report.Of(store).History(ctx, uid)
	return found, attempts, err
}

// ErrUnknownModel is the uid of a model that is not stored.
var ErrUnknownModel = errors.New("expected the uid of a stored model, found none of that name")

// Rejection is the newest rejected message about a model as -o json shows it.
type Rejection struct {
	ID     string `json:"id"`
	At     string `json:"at"`
	Source string `json:"source"`
	Reason string `json:"reason"`
}

// Text describes a rejected message; "": there is none.
func (r *Rejection) Text(when func(time.Time) string) string {
	if r == nil {
		return ""
	}
	what, at := map[string]string{"control": "a command", "output": "a message of a worker"}[r.Source], r.At
	if instant, err := time.Parse(time.RFC3339, r.At); err == nil {
		at = when(instant)
	}
	return what + " was rejected at " + at + " and changed nothing: " + r.Reason
}

// MissingRole is a kind of process that a model waits for in vain.
type MissingRole struct {
	Role    model.Role `json:"party"`
	Reason  string     `json:"reason"`
	Certain bool       `json:"certain"` // so long a silence has no other cause
}

// Missing is the missing role that the model needs; nil, which is null: none, or not read.
func (s View) Missing() *MissingRole {
	if s.Liveness == nil {
		return nil
	}
	missing, is := s.Liveness.MissingFor(&s.Record.State, s.Status)
	if !is {
		return nil
	}
	return &MissingRole{missing.Role, missing.String(), missing.Certain}
}

func (s View) misses(role model.Role) bool {
	return cmp.Or(s.Missing(), &MissingRole{}).Role == role
}

// dead says that nobody has a role, and how long ago somebody had; empty: somebody may have it.
func (s View) dead(role model.Role) string {
	for _, missing := range s.Liveness.Dead() {
		if missing.Role == role {
			return missing.String()
		}
	}
	return ""
}

// because says in a list why the model waits, without times.
func (s View) because(blockers *model.Blockers) string {
	blocker := s.Record.ParkedBy
	kind, name := blocker.Split()
	switch opens, until := blockers.Opens(blocker, s.Now); {
	case s.Record.Broken:
		return s.Record.Fault
	case !s.Record.Parked():
		return s.Record.Why
	case blocker.Timed() && opens:
		return kind + " " + name + " no longer stops it"
	default:
		return StopText(blockers, blocker, until, nil)
	}
}

func stopped(blocker model.Blocker) string {
	switch kind, name := blocker.Split(); kind {
	case "":
		return ""
	case model.BlockerHold:
		return "hold " + name + " stops it"
	case model.BlockerCalendar:
		return "the calendar " + name + " is closed"
	case model.BlockerLimit:
		return "limit " + name + " is full or closed"
	case model.BlockerSuspect:
		return "its result is doubted"
	default:
		return "the circuit of " + name + " is open"
	}
}

// UTC writes an instant beside models of several zones.
func UTC(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }
