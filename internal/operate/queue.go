package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Settings are how many parts a queue has, and how its messages are written.
type Settings struct {
	Queue       string `json:"queue"`
	Parts       int    `json:"parts"`
	ModelName   string `json:"model_name"`
	AttemptName string `json:"attempt_name"`
	Payload     string `json:"payload"` // top or nested
	// NewErrorAbove is how many models may fail with one fingerprint before the operators are notified; 0: they never are.
	NewErrorAbove int `json:"new_error_above"`
}

// Settings returns those of the queue.
func (o Operator) Settings() Settings {
	wire := o.Queue.Wire.WithDefaults()
	s := Settings{o.Queue.Name, len(o.Queue.Parts), wire.ModelName, wire.AttemptName, store.PayloadTop, o.Queue.NewErrorAbove()}
	if wire.Nested {
		s.Payload = store.PayloadNested
	}
	return s
}

// CreateQueue fixes how many parts a queue has, for ever, before anything is stored in it. To create it again alike changes nothing.
func CreateQueue(ctx context.Context, clients *redis.Clients, config store.Config, parts int) error {
	if parts < 1 || parts > store.MaxParts {
		return refuse("parts", fmt.Sprintf("1 to %d", store.MaxParts), fmt.Sprint(parts))
	}
	return store.Create(ctx, clients, config, parts)
}

const maxOthers = 5

// Unused warns that nothing was ever stored in the queue, whose name may be mistyped, and lists others; empty: something was, or Redis refused the
// question.
func Unused(ctx context.Context, o Operator) string {
	if used, err := o.Queue.Report().Used(ctx); err != nil || used {
		return ""
	}
	others, err := o.Queue.Report().Others(ctx)
	text := "others here: "
	switch {
	case err != nil:
		text = "another one may be meant"
	case len(others) == 0:
		text = "no other queue was found in this Redis"
	case len(others) > maxOthers:
		others = append(others[:maxOthers], "…")
	}
	return "queue " + o.Queue.Name + ": nothing was ever stored in it; " + text + strings.Join(others, ", ")
}

// SettingsRequest changes settings of a queue. Empty fields stay as they are.
type SettingsRequest struct {
	ModelName, AttemptName, Payload string

	NewErrorAbove *int
	Force         bool // also while the queue is used
}

// PayloadPlaces are the possible places of the payload.
var PayloadPlaces = []string{store.PayloadTop, store.PayloadNested}

// Validate refuses what is wrong for any queue.
func (r *SettingsRequest) Validate() error {
	switch {
	case r.ModelName+r.AttemptName+r.Payload == "" && r.NewErrorAbove == nil:
		return refuse("settings", "`model-name`, `attempt-name`, `payload` or `new-error-above`", "none")
	case r.Payload != "" && !slices.Contains(PayloadPlaces, r.Payload):
		return refuse("payload", "one of "+strings.Join(PayloadPlaces, ", "), document.Found(r.Payload))
	case r.NewErrorAbove != nil && *r.NewErrorAbove < 0:
		return refuse("new-error-above", "0 or more", fmt.Sprint(*r.NewErrorAbove))
	}
	return nil
}

// SetQueue changes settings of the queue.
func (o Operator) SetQueue(ctx context.Context, r SettingsRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	wire := model.Wire{
		ModelName: cmp.Or(r.ModelName, o.Queue.Wire.ModelName), AttemptName: cmp.Or(r.AttemptName, o.Queue.Wire.AttemptName), Nested: o.Queue.Wire.Nested,
	}
	if r.Payload != "" {
		wire.Nested = r.Payload == store.PayloadNested
	}
	err := o.Queue.SetWire(ctx, wire, r.Force)
	if used, is := errors.AsType[*document.Error](err); is && used.Field == "queue" && !r.Force {
		err = hint.For(err, hint.SetUsedQueue, "")
	}
	if err == nil && r.NewErrorAbove != nil {
		err = o.Queue.SetNewErrorAbove(ctx, *r.NewErrorAbove)
	}
	return err
}
