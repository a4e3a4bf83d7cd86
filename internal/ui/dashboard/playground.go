package dashboard

import (
	"context"
	"errors"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/ui/playground"
	"github.com/refreshd/refreshd/model/policy"
)

var playgroundPage = page{path: "playground", title: "Playground", nav: true, file: "playground", read: readPlayground, form: true}

const maxPlays = 2

func readPlayground(ctx context.Context, req *request) (any, error) {
	form := playground.ReadForm(req.get)
	if name := req.get("policy"); name != "" && req.get("text") == "" {
		p, err := readStored(ctx, req.queue.Parts[0], name)
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
		form.Text = definitions.EnglishBeside(p, known)
	}
	return form, play(ctx, req, form.Play)
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
