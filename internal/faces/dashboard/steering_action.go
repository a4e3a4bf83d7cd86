package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func (req *request) ending(field string) operate.Ending { return operate.Ending{End: req.get(field)} }

func putHold(ctx context.Context, req *request) (outcome, error) {
	if req.get("selector") == "" && req.get("all") == "" {
		return outcome{}, document.Refuse("selector", "one such as tenant=t1, or the mark that all models are meant", "neither")
	}
	return hold(ctx, req, operate.HoldRequest{ID: req.get("id"), Selector: req.get("selector"), Ending: req.ending("end"), Cancel: req.get("cancel") != ""})
}

func holdModel(ctx context.Context, req *request) (outcome, error) {
	uid, err := req.uid()
	if err != nil {
		return outcome{}, err
	}
	done, err := hold(ctx, req, operate.HoldRequest{Selector: model.SelectUID + "=" + uid, Ending: req.ending("for")})
	return outcome{text: uid + " is held. " + done.text, next: req.Link("model", "uid", uid)}, err
}

func hold(ctx context.Context, req *request, r operate.HoldRequest) (outcome, error) {
	r.Reason = req.get("reason")
	held, bulk, err := req.operator.Hold(ctx, r)
	text := fmt.Sprintf("The hold %s keeps %s from starting.", held.ID, cmp.Or(held.Selector, "all models"))
	if bulk != "" {
		text += " The bulk " + bulk + " takes back what runs."
	}
	return outcome{text: text}, err
}

func releaseHold(ctx context.Context, req *request) (outcome, error) {
	id := req.get("id")
	if err := document.ValidateID("id", id); err != nil {
		return outcome{}, err
	}
	_, err := req.operator.Release(ctx, id, "")
	return outcome{text: "The hold " + id + " is released: what waits for it starts once."}, err
}

func openCircuit(ctx context.Context, req *request) (outcome, error) {
	key := req.get("key")
	after, err := req.operator.OpenCircuit(ctx, key, req.get("probe"), req.get("reason"))
	return outcome{text: "The circuit " + key + " is open, for " + document.FormatDuration(after) + " at least.", next: req.Link("steering", "key", key)}, err
}

func closeCircuit(ctx context.Context, req *request) (outcome, error) {
	key := req.get("key")
	return outcome{text: "The circuit " + key + " is closed: its models start again.", next: req.Link("steering", "key", key)}, req.operator.CloseCircuit(ctx, key)
}

// setLimit sets a limit for a key, or for all keys of a template.
func setLimit(ctx context.Context, req *request) (outcome, error) {
	key := req.get("key")
	r := operate.LimitRequest{Key: key, Running: req.get("running"), Rate: req.get("rate"), Reason: req.get("reason"), Ending: req.ending("end")}
	return outcome{text: "The limit of " + key + " is set."}, req.operator.SetLimit(ctx, r)
}

func removeLimit(ctx context.Context, req *request) (outcome, error) {
	key := req.get("key")
	return outcome{text: "The limit of " + key + " is forgotten: what policies say is in force."}, req.operator.RemoveLimit(ctx, key)
}

func cancelBulk(ctx context.Context, req *request) (outcome, error) {
	id := req.get("id")
	_, err := req.operator.CancelBulk(ctx, id)
	return outcome{text: "The bulk " + id + " is cancelled; what it has done stays done."}, err
}

// runFailures begins a bulk that runs the models of one group.
func runFailures(ctx context.Context, req *request) (outcome, error) {
	id := req.get("error")
	if err := model.ValidateFingerprintID(id); err != nil {
		return outcome{}, err
	}
	bulk, err := req.operator.BeginBulk(ctx, operate.BulkRequest{Action: model.CommandRun, Selector: model.SelectError + "=" + id, Rate: req.get("rate")})
	return outcome{text: fmt.Sprintf("The bulk %s runs all models that fail by %s.", bulk, id), next: req.Link("steering")}, err
}

// requeueRejected moves a rejected message back to the list that it came from.
func requeueRejected(ctx context.Context, req *request) (outcome, error) {
	changed, err := req.operator.RequeueRejected(ctx, req.messages())
	return outcome{text: "The message " + req.get("id") + " is requeued: look whether it is rejected again."}, errors.Join(append(changed.Refused, err)...)
}

func dropRejected(ctx context.Context, req *request) (outcome, error) {
	changed, err := req.operator.DropRejected(ctx, req.messages())
	return outcome{text: "The message " + req.get("id") + " is forgotten."}, errors.Join(append(changed.Refused, err)...)
}

func (req *request) messages() operate.Messages {
	return operate.Messages{IDs: []string{req.get("id")}}
}
