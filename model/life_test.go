package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// life is a story whose model wakes as the dispatcher wakes it: the end of a give-up window and a missed refresh included.
type life struct{ *story }

// live puts a model at midnight and walks through the steps, which are separated by "|". The step "wake" is what a due model
// does; all others are those of a story.
func live(t testing.TB, definition, steps string) *life {
	t.Helper()
	l := &life{begin(t, definition)}
	l.step(monday, "put", "")
	return l.on(steps)
}

func (l *life) on(steps string) *life {
	l.t.Helper()
	for step := range strings.SplitSeq(steps, "|") {
		if words := strings.SplitN(strings.TrimSpace(step), " ", 3); len(words) > 1 {
			l.step(clock(words[0]), words[1], strings.Join(words[2:], ""))
		}
	}
	return l
}

func (l *life) step(now time.Time, verb, extra string) {
	l.t.Helper()
	switch verb {
	case "wake":
		l.wake(now)
	case "timeout", "withdraw":
		l.decision, l.outcome = l.tick(now, verb), Applied
	case "put", "remove", "run", "enable", "disable":
		l.obey(now, verb, extra)
	default:
		l.hear(now, verb, extra)
	}
	if l.outcome == Applied {
		l.apply()
	}
	for broken, is := range l.broken(now) {
		endless := l.m.Policy.MaxRetries() == policy.Unlimited && strings.HasPrefix(broken, "more attempts")
		if is && !endless {
			l.t.Errorf("%s after %s: %s: %s", clockText(now), l.decision.Event, broken, l)
		}
	}
}

func (l *life) wake(now time.Time) {
	l.t.Helper()
	if !l.m.Due(now) {
		l.t.Fatalf("%s: not due: %s", clockText(now), l)
	}
	l.decision, l.outcome = l.m.Wake(now, fmt.Sprintf("a%d", l.starts+1)), Applied
	if l.decision.Event == EventStart {
		l.starts++
	}
}

// lifeTest is one line of a table: a model, what happens to it, and the state after the last step.
type lifeTest struct{ definition, steps, want string }

func runLives(t *testing.T, tests []lifeTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.steps, func(t *testing.T) { live(t, test.definition, test.steps).expect(test.want) })
	}
}

// policyOf reads a policy that must be good.
func policyOf(t testing.TB, text string) policy.Policy {
	t.Helper()
	policy, err := policy.Parse(jsonOf(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return policy
}

// refusals checks what bad policies are refused with.
func refusals(t *testing.T, wants map[string]string) {
	t.Helper()
	for text, want := range wants {
		if _, err := policy.Parse(jsonOf(t, text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// refusedField is the field that an error names; "-" when it is no refusal.
func refusedField(err error) string {
	var refused *document.Error
	if !errors.As(err, &refused) {
		return "-"
	}
	return refused.Field
}

func jsonOf(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}
