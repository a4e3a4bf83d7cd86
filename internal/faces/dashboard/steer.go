package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/commands"
	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// steer is the action that carries out a command about one model.
func steer(kind model.CommandType) func(context.Context, *visit) (outcome, error) {
	return func(ctx context.Context, v *visit) (outcome, error) {
		uid, err := v.uidOf()
		if err != nil {
			return outcome{}, err
		}
		request := &commands.Request{Command: model.Command{Type: kind, UID: uid, By: v.by, Force: v.get("force") != "", Reason: v.get("reason")}}
		if err := commands.ExecuteAll(ctx, v.queue, []*commands.Request{request}); err != nil {
			return outcome{}, err
		}
		done := outcome{next: v.link("model", "uid", uid)}
		if errors.Is(request.Refused, explain.ErrUnknownModel) {
			done.next = v.link("models")
		}
		if request.Refused != nil {
			return done, fmt.Errorf("%s: %w", uid, request.Refused)
		}
		done.told, err = v.becameOf(ctx, request)
		return done, err
	}
}

// becameOf says in words what a command has done.
func (v *visit) becameOf(ctx context.Context, request *commands.Request) (string, error) {
	uid := request.Command.UID
	if request.Result == commands.ResultUnchanged {
		return uid + ": nothing had to be changed.", nil
	}
	if request.Command.Type == model.CommandDisable {
		return uid + " is disabled until somebody enables it.", nil
	}
	part := v.queue.Of(uid)
	found, err := explain.ReadModel(ctx, part, uid)
	if err != nil {
		return "", err
	}
	gates, err := part.Blockers(ctx)
	if err != nil {
		return "", err
	}
	text := uid + " is enabled"
	if request.Command.Type == model.CommandRun {
		text = uid + " was asked for"
	}
	when := func(at time.Time) string {
		return clock(at, explain.ZoneOf(&found.Record.Model)) + " (" + words.Distance(at, found.Now) + ")"
	}
	if m := &found.Record.Model; m.Waiting() {
		if gate, until := gates.Stop(m, found.Now); gate != "" {
			return text + ", and does not start yet: " + explain.StopText(&gates, gate, until, when) + ".", nil
		}
	}
	return text + ". Now it is " + found.StatusText() + ".", nil
}

func holdModel(ctx context.Context, v *visit) (outcome, error) {
	uid, err := v.uidOf()
	if err != nil {
		return outcome{}, err
	}
	v.query.Set("selector", model.SelectUID+"="+uid)
	v.query.Set("end", v.get("for"))
	done, err := putHold(ctx, v)
	return outcome{told: uid + " is held. " + done.told, next: v.link("model", "uid", uid)}, err
}

func releaseHold(ctx context.Context, v *visit) (outcome, error) {
	id := v.get("id")
	if err := document.ValidateID("id", id); err != nil {
		return outcome{}, err
	}
	holds, problem, err := v.queue.Parts[0].Fleet().Holds(ctx)
	if err := cmp.Or(err, problem); err != nil {
		return outcome{}, err
	}
	within := time.Duration(0)
	for i := range holds {
		if holds[i].ID == id {
			within = holds[i].Within
		}
	}
	released, err := v.queue.Fleet().ReleaseHold(ctx, id, within)
	if err == nil && !released {
		err = fmt.Errorf("%s: expected a hold, found that it has ended", id)
	}
	return outcome{told: "The hold " + id + " is released: what waits for it starts once."}, err
}
