package model

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Wire names the model and the attempt in the messages of a queue, and the place of the payload. The zero value is for a queue
// that configures nothing. It is comparable.
type Wire struct {
	// ModelName is the field of an entry with the uid of the model. Defaults to big_table_uid.
	ModelName string
	// AttemptName is the field of an entry with the uid of the attempt. Defaults to refresh_attempt_uid.
	AttemptName string
	// Nested says that the payload is one object under the name payload; otherwise its fields are at top level.
	Nested bool
}

const (
	defaultModelName   = "big_table_uid"
	defaultAttemptName = "refresh_attempt_uid"
	shortModelName     = "uid"
	shortAttemptName   = "attempt_uid"
	otherAttemptName   = "request_attempt_uid"
	payloadName        = "payload"
)

// WithDefaults returns a copy with both names.
func (w Wire) WithDefaults() Wire {
	if w.ModelName == "" {
		w.ModelName = defaultModelName
	}
	if w.AttemptName == "" {
		w.AttemptName = defaultAttemptName
	}
	return w
}

// modelNames may hold the uid of the model in a result, the queue's own first.
func (w Wire) modelNames() []string {
	return []string{w.WithDefaults().ModelName, defaultModelName, shortModelName}
}

// attemptNames may hold the uid of the attempt in a result. The first ones, so many, are reserved in payloads.
func (w Wire) attemptNames() (names []string, reserved int) {
	if own := w.WithDefaults().AttemptName; own != defaultAttemptName {
		return []string{own, shortAttemptName, defaultAttemptName, otherAttemptName}, 1
	}
	return []string{defaultAttemptName, otherAttemptName, shortAttemptName}, 2
}

var ownFields = []string{
	"type", payloadName, "attempt_no", "deadline_at", "planned_at", "fence", "due_at", "for", deathsName, "reply_to", traceparentName,
	"v",
	"changed", "reason", "error_type", "retryable", "retry_after", "user_friendly_reason", "status", "progress", "worker", "processing_id",
}

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Validate refuses names that are none, and those that mean something else: two fields of one name, in upper case either, would be one field
// for many JSON readers.
func (w Wire) Validate() error {
	attempt, _ := Wire{}.attemptNames()
	if err := refuseName("model_name", w.ModelName, attempt); err != nil {
		return err
	}
	return refuseName("attempt_name", w.AttemptName, w.modelNames())
}

func refuseName(field, name string, others []string) error {
	taken := slices.ContainsFunc(slices.Concat(ownFields, others), func(other string) bool { return strings.EqualFold(other, name) })
	if name == "" || !taken && namePattern.MatchString(name) {
		return nil
	}
	return document.Refuse(field, `1 to 64 letters, digits and _ as in "banner_uid", and no name that means something else`, document.Found(name))
}

// reserved names must not be in a payload, in any case: many JSON readers ignore case.
func (w Wire) reserved() []string {
	if w.Nested {
		return nil
	}
	w = w.WithDefaults()
	names := []string{w.ModelName, w.AttemptName}
	if w.AttemptName == defaultAttemptName {
		names = append(names, otherAttemptName)
	}
	return append(names, "attempt_no", "deadline_at", "planned_at", "reply_to", traceparentName)
}

// fenceNames are reserved too, but for payloads that were saved before they were.
var fenceNames = []string{"fence", "due_at", "for", deathsName}

const deathsName = "deaths"

// namesFence reports whether a payload has one of these names at top level. Then an entry with the payload beside it has none of ours.
func namesFence(payload string) bool {
	text := strings.ToLower(payload)
	if !slices.ContainsFunc(fenceNames, func(name string) bool { return strings.Contains(text, `"`+name+`":`) }) {
		return false
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(text), &fields) // it is canonical
	return slices.ContainsFunc(fenceNames, func(name string) bool { return fields[name] != nil })
}

// refuseReserved refuses a payload with a reserved name, or one of others.
func (w Wire) refuseReserved(payload string, others ...string) error {
	if w.Nested {
		return nil
	}
	value, _ := document.Decode([]byte(payload)) // it is canonical
	fields, _ := value.(map[string]any)
	names := append(w.reserved(), others...)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.ContainsFunc(names, func(reserved string) bool { return strings.EqualFold(reserved, name) }) {
			return document.Refuse("payload."+document.Shorten(name, document.MaxFound), "a name other than "+strings.Join(names, ", "), "a reserved one")
		}
	}
	return nil
}
