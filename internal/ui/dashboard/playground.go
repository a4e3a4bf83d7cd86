package dashboard

import (
	"context"
	"errors"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/playground"
	"github.com/refreshd/refreshd/model/policy"
)

var playgroundPage = page{path: "playground", title: "Playground", nav: true, file: "playground", read: readPlayground, form: true}

const maxPlays = 2

// trial is a policy that somebody tries, perhaps in place of a stored one.
type trial struct {
	*playground.Form
	Policy, PriorDigest string // the name of the stored one, and the digest of its text; empty: there is none
}

func readPlayground(ctx context.Context, req *request) (any, error) {
	page := &trial{Form: playground.ReadForm(req.get), Policy: req.get("policy"), PriorDigest: req.get("was")}
	if page.PriorDigest == "" {
		stored, _, err := req.queue.Parts[0].Report().PolicyText(ctx, page.Policy)
		if page.PriorDigest = store.Digest(stored); err != nil {
			return nil, err
		}
	}
	if page.Policy != "" && req.get("text") == "" {
		p, err := readStored(ctx, req.queue.Parts[0], page.Policy)
		if err != nil {
			return nil, err
		}
		known, err := readStored(ctx, req.queue.Parts[0], policy.DefaultName)
		if errors.Is(err, playground.ErrNotStored) {
			known, err = policy.Default(), nil
		}
		if err != nil {
			return nil, err
		}
		page.Text = definitions.EnglishBeside(p, known)
	}
	return page, play(ctx, req, page.Play)
}

// play waits until a simulation may run, and runs it now and with the stored policies.
func play(ctx context.Context, req *request, run func(playground.Setting) error) error {
	select {
	case req.plays <- struct{}{}:
		defer func() { <-req.plays }()
	case <-ctx.Done():
		return ctx.Err()
	}
	now, err := req.now(ctx)
	if err != nil {
		return err
	}
	return run(playground.Setting{Now: now, Clock: req.clock, Find: func(name string) (policy.Policy, error) {
		return readStored(ctx, req.queue.Parts[0], name)
	}})
}
