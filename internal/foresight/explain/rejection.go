package explain

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/store"
)

// Text tells a person of a rejected message about a model; "": there is none.
func (r *Rejection) Text(when func(time.Time) string) string {
	if r == nil {
		return ""
	}
	what, at := map[string]string{"control": "a command", "output": "a message of a worker"}[r.Source], r.At
	if instant, err := time.Parse(time.RFC3339, r.At); err == nil {
		at = when(instant)
	}
	return what + " was rejected at " + at + ": " + r.Reason
}

// Rejection is the newest rejected message about a model as -o json shows it.
type Rejection struct {
	ID     string `json:"id"`
	At     string `json:"at"`
	Source string `json:"source"`
	Reason string `json:"reason"`
}

func readRejection(ctx context.Context, part *store.Store, uid string) (*Rejection, error) {
	r, found, err := part.Fleet().RejectionAbout(ctx, uid)
	if err != nil || !found {
		return nil, err
	}
	return &Rejection{r.ID(), r.At, r.Source, r.Reason}, nil
}
