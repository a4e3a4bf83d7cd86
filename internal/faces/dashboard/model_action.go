package dashboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// change is the action that carries out a command about one model.
func change(kind model.CommandType) func(context.Context, *request) (outcome, error) {
	return func(ctx context.Context, req *request) (outcome, error) {
		uid, err := req.uid()
		if err != nil {
			return outcome{}, err
		}
		request := &operate.Request{Command: model.Command{Type: kind, UID: uid, By: req.operator.By, Force: req.get("force") != "", Reason: req.get("reason")}}
		if err := operate.Execute(ctx, req.queue, []*operate.Request{request}); err != nil {
			return outcome{}, err
		}
		done := outcome{next: req.Link("model", "uid", uid)}
		if errors.Is(request.Refused, explain.ErrUnknownModel) {
			done.next = req.Link("models")
		}
		if request.Refused != nil {
			return done, fmt.Errorf("%s: %w", uid, request.Refused)
		}
		done.text, err = req.describe(ctx, request)
		return done, err
	}
}

// describe says in words what a command has done.
func (req *request) describe(ctx context.Context, request *operate.Request) (string, error) {
	uid := request.Command.UID
	if request.Result == operate.ResultUnchanged {
		return uid + ": nothing had to be changed.", nil
	}
	if request.Command.Type == model.CommandDisable {
		return uid + " is disabled until somebody enables it.", nil
	}
	part := req.queue.Of(uid)
	found, err := explain.ReadModel(ctx, part, uid)
	if err != nil {
		return "", err
	}
	blockers, err := part.Blockers(ctx)
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
		if blocker, until := blockers.Stop(m, found.Now); blocker != "" {
			return text + ", and does not start yet: " + explain.StopText(&blockers, blocker, until, when) + ".", nil
		}
	}
	return text + ". Now it is " + found.StatusText() + ".", nil
}
