package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	// NewErrorAbove is how many models one group of failures may stop before the operators are told; 0: they never are.
	NewErrorAbove int `json:"new_error_above"`
}

// Settings are those of the queue.
func (o Operator) Settings() Settings {
	wire := o.Queue.Wire.WithDefaults()
	s := Settings{o.Queue.Name, len(o.Queue.Parts), wire.ModelName, wire.AttemptName, store.PayloadTop, o.Queue.NewErrorAbove()}
	if wire.Nested {
		s.Payload = store.PayloadNested
	}
	return s
}

// SettingsRequest changes settings of a queue. What is empty stays as it is.
type SettingsRequest struct {
	ModelName, AttemptName, Payload string

	NewErrorAbove *int
	Force         bool // also while the queue is used
}

// PayloadPlaces are the places where the payload may stand.
var PayloadPlaces = []string{store.PayloadTop, store.PayloadNested}

// Validate refuses what is wrong for any queue.
func (r *SettingsRequest) Validate() error {
	switch {
	case r.ModelName+r.AttemptName+r.Payload == "" && r.NewErrorAbove == nil:
		return refuse("queue set", "--model-name, --attempt-name, --payload or --new-error-above", "none")
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
		err = fmt.Errorf("%w; --force sets it all the same", err)
	}
	if err == nil && r.NewErrorAbove != nil {
		err = o.Queue.SetNewErrorAbove(ctx, *r.NewErrorAbove)
	}
	return err
}
