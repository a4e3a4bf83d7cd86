package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Policy says how long an attempt may take and what happens when it fails. It is data: shared by many models, stored once
// under a name.
type Policy struct {
	Timeout     time.Duration // from the start (or the worker's `started`) to the deadline; 1 ms to 10 years
	Retries     Delays        // one delay for each failure that is followed by a retry (S0-18)
	Alignment   Alignment     // how a retry is joined with the schedule (S0-43)
	OnExhausted OnExhausted   // what follows the failure after the last retry (S0-44)
}

// Delays is an explicit retry list: Delays[k-1] follows failure k. N delays are N retries are N+1 runs (decision 1).
type Delays []time.Duration

// Delay returns the delay after failure k (1 is the first); false: there is no retry for it.
func (d Delays) Delay(k int) (time.Duration, bool) {
	if k < 1 || k > len(d) {
		return 0, false
	}
	return d[k-1], true
}

// Alignment is how a retry is joined with the schedule.
type Alignment string

// AlignPlanned lets a retry run only when it ends before the planned refresh begins (S0-29).
const AlignPlanned Alignment = "align_planned"

// OnExhausted is what follows the failure after the last retry.
type OnExhausted string

const (
	// GiveUp disables the model until it is updated (S0-12).
	GiveUp OnExhausted = "give_up"
	// NextPlanned resets attempt_no and waits for the planned refresh (S0-44); without one it gives up (S0-45).
	NextPlanned OnExhausted = "next_planned"
)

// DefaultTimeout is the timeout of a policy that names none (S0-48).
const DefaultTimeout = 10 * time.Minute

// DefaultPolicy serves models that name no policy: three retries, then the schedule goes on.
func DefaultPolicy() Policy {
	return Policy{
		Timeout:     DefaultTimeout,
		Retries:     Delays{0, time.Minute, 5 * time.Minute},
		Alignment:   AlignPlanned,
		OnExhausted: NextPlanned,
	}
}

// MarshalJSON renders the canonical form: fixed field order, canonical durations, every field present.
func (p Policy) MarshalJSON() ([]byte, error) {
	canonical := struct {
		Timeout     string   `json:"timeout"`
		Retries     []string `json:"retries"`
		Alignment   string   `json:"alignment"`
		OnExhausted string   `json:"on_exhausted"`
	}{FormatDuration(p.Timeout), []string{}, string(p.Alignment), string(p.OnExhausted)}
	for _, delay := range p.Retries {
		canonical.Retries = append(canonical.Retries, FormatDuration(delay))
	}
	return json.Marshal(canonical)
}

// ContentName is the name under which an inline policy is stored: equal content, equal name.
func (p Policy) ContentName() string {
	canonical, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("marshal policy: %v", err)) // strings only: cannot fail
	}
	sum := sha256.Sum256(canonical)
	return "inline-" + hex.EncodeToString(sum[:8])
}

// ParsePolicy reads a policy from decoded JSON or YAML. Unknown fields are errors that name the field (decision 12).
func ParsePolicy(value any) (Policy, error) {
	doc, err := object(value, "timeout", "retries", "alignment", "on_exhausted")
	if err != nil {
		return Policy{}, err
	}
	policy := Policy{Timeout: DefaultTimeout, Alignment: AlignPlanned}
	if text, found, err := doc.scalar("timeout"); err != nil {
		return Policy{}, err
	} else if found {
		if policy.Timeout, err = doc.duration("timeout", text); err != nil {
			return Policy{}, err
		}
	}
	if policy.Timeout <= 0 {
		return Policy{}, &FieldError{"timeout", `a duration above zero, such as "10m"`, Found(doc.fields["timeout"])}
	}
	if policy.Retries, err = parseDelays(doc); err != nil {
		return Policy{}, err
	}
	alignment, err := doc.oneOf("alignment", string(AlignPlanned))
	if err != nil {
		return Policy{}, err
	}
	policy.Alignment = Alignment(alignment)
	// A policy without retries would disable a recurring model on its first failure: only on request (bug 28).
	fallback := GiveUp
	if len(policy.Retries) == 0 {
		fallback = NextPlanned
	}
	exhausted, err := doc.oneOf("on_exhausted", string(fallback), string(GiveUp), string(NextPlanned))
	policy.OnExhausted = OnExhausted(exhausted)
	return policy, err
}

func parseDelays(doc document) (Delays, error) {
	value, found := doc.fields["retries"]
	if !found || value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, &FieldError{"retries", "a list of delays, such as [0, 1m, 5m]", Found(value)}
	}
	delays := make(Delays, 0, len(list))
	for i, item := range list {
		field := fmt.Sprintf("retries[%d]", i)
		text, ok := scalarText(item)
		if !ok {
			return nil, &FieldError{field, `a delay such as 0 or "5m"`, Found(item)}
		}
		delay, err := doc.duration(field, text)
		if err != nil {
			return nil, err
		}
		delays = append(delays, delay)
	}
	return delays, nil
}

// Equal reports whether both policies decide alike.
func (p Policy) Equal(other Policy) bool {
	return p.Timeout == other.Timeout && slices.Equal(p.Retries, other.Retries) &&
		p.Alignment == other.Alignment && p.OnExhausted == other.OnExhausted
}
