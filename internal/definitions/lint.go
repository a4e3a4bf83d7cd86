package definitions

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// LintPolicy warns of what is seldom meant in a policy.
func LintPolicy(doc Document, p policy.Policy, now time.Time) (warnings []policy.Warning) {
	fields, ok := doc.Value.(map[string]any)
	if ok && fields["timeout"] == nil {
		missing := "is missing: " + document.FormatDuration(p.Timeout) + ", that of the policy default"
		warnings = append(warnings, policy.Warning{Field: "timeout", Text: missing})
	}
	said := fields["retries"] != nil || fields["retry_intervals"] != nil
	if said && fields["on_exhausted"] == nil && p.OnExhausted == policy.GiveUp {
		warnings = append(warnings, policy.Warning{Field: "on_exhausted",
			Text: "is missing: give_up, so that a model is disabled after its last retry; next_planned lets it go on with its rule"})
	}
	if doc.SaysMail && p.Email == (policy.Recipient{}) {
		warnings = append(warnings, policy.Warning{Field: "notify",
			Text: `says e-mail, and not to whom: "Email the customer at owner_email of the payload", or "at the label owner"`})
	}
	m := model.Model{UID: "policy"}
	if m.Resolve(p, schedule.Parse) != nil {
		return warnings // it was parsed, so it compiles
	}
	return append(warnings, m.Lint(p.Dtstart != "", now)...)
}

// ModelLinter warns of what is seldom meant in models. It checks each schedule and policy once: a million models share few.
type ModelLinter struct {
	known map[linted][]policy.Warning
}

type linted struct {
	rule, timezone, policy string
	anchored               bool
}

// maxLinted bounds the memory and time that models without common rules cost.
const maxLinted = 1000

// Lint returns the warnings about a saved model; the caller must not change them. anchored: its author named a dtstart.
func (l *ModelLinter) Lint(m *model.Model, anchored bool, now time.Time) []policy.Warning {
	definition := linted{m.Rule, m.Timezone, m.PolicyName, anchored}
	warnings, known := l.known[definition]
	if known || len(l.known) >= maxLinted {
		return warnings
	}
	if l.known == nil {
		l.known = make(map[linted][]policy.Warning)
	}
	warnings = m.Lint(anchored, now)
	l.known[definition] = warnings
	for i, w := range warnings {
		if !strings.HasPrefix(w.Field, "rrule") && w.Field != "dtstart" && w.Field != "timezone" {
			warnings[i].Field = fieldBelow(policyRoot, w.Field)
		}
	}
	return warnings
}
