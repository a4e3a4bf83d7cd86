package store

import (
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// KeyKind says what a key holds of which a queue has many.
type KeyKind int

// The kinds of keys of which a queue has many, and of indexes of which it has one.
const (
	KeyModel KeyKind = iota
	KeyPayload
	KeyHistory
	KeyClaimed
	KeyTaken
	KeyReply
	KeyBulk
	KeyError
	KeyLabel
	KeyGate // what waits for one
	KeyLimit
	KeyRate
	KeyCircuitState
	KeyTold
	KeyNotices
	KeyRecipients
	// Of these there is one.
	KeyFailing
	KeyDisabled
	KeyParked
)

// Index is a set in which only some models stand: those that fail, are disabled or parked, and those of one label, gate or limit.
type Index struct {
	Kind KeyKind
	Name string // of the label, gate or limit; empty: the queue has one of the kind
}

// Index is the key of an index.
func (k *Keys) Index(i Index) string {
	switch i.Kind {
	case KeyFailing:
		return k.Failing
	case KeyDisabled:
		return k.Disabled
	case KeyParked:
		return k.Parked
	case KeyGate:
		return k.ParkedBy(i.Name)
	case KeyLimit:
		return k.Limit(i.Name)
	default:
		return k.Label(i.Name)
	}
}

// Scored reports whether the index is a sorted set.
func (i Index) Scored() bool { return i.Kind != KeyLabel }

// Field is the field of a model that says whether it stands in the index.
func (i Index) Field() string {
	switch i.Kind {
	case KeyFailing:
		return "failing_since"
	case KeyDisabled:
		return "refresh_disabled_until_update"
	case KeyParked, KeyGate:
		return "parked_by"
	case KeyLimit:
		return "counted_by"
	default:
		name, _, _ := strings.Cut(i.Name, "=")
		return labelPrefix + name
	}
}

// Said reports whether the value of the field says that the model stands in the index.
func (i Index) Said(value string) bool {
	switch i.Kind {
	case KeyFailing, KeyDisabled, KeyParked:
		return value != ""
	case KeyGate:
		return value == i.Name
	case KeyLimit:
		return slices.Contains(strings.Fields(value), string(model.NewBlocker(model.BlockerLimit, i.Name)))
	default:
		_, is, _ := strings.Cut(i.Name, "=")
		return value == is
	}
}

// Leaving lets a transition that writes all indexes anew take its model out of one in which it stands by mistake.
func (t *Transition) Leaving(index Index) *Transition {
	switch index.Kind {
	case KeyGate:
		t.was.gate = model.Blocker(index.Name)
	case KeyLimit:
		t.was.counted = strings.TrimSpace(t.was.counted + " " + string(model.NewBlocker(model.BlockerLimit, index.Name)))
	case KeyLabel:
		name, value, _ := strings.Cut(index.Name, "=")
		t.wasLabels = map[string]string{name: value}
	}
	return t
}
