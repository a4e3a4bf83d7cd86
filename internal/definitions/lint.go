package definitions

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// LintPolicy warns of what is seldom meant in a policy, which was read from a document.
func LintPolicy(doc Document, p policy.Policy, now time.Time) (warnings []policy.Warning) {
	if fields, ok := doc.Value.(map[string]any); ok && fields["timeout"] == nil {
		missing := "is missing: " + document.FormatDuration(p.Timeout) + ", that of the policy default"
		warnings = append(warnings, policy.Warning{Field: "timeout", Text: missing})
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

// ModelLinter warns of what is seldom meant in models, once for each schedule and policy: a million models share few.
type ModelLinter struct {
	known map[linted]bool
}

type linted struct {
	rule, timezone, policy string
	anchored               bool
}

// maxLinted bounds what is remembered, and with it the time that is spent on models that are all different.
const maxLinted = 1000

// Lint returns the warnings about a saved model; anchored says that its author named a dtstart.
func (l *ModelLinter) Lint(m *model.Model, anchored bool, now time.Time) []policy.Warning {
	definition := linted{m.Rule, m.Timezone, m.PolicyName, anchored}
	if l.known[definition] || len(l.known) >= maxLinted {
		return nil
	}
	if l.known == nil {
		l.known = make(map[linted]bool)
	}
	l.known[definition] = true
	warnings := m.Lint(anchored, now)
	for i, w := range warnings {
		if !strings.HasPrefix(w.Field, "rrule") && w.Field != "dtstart" && w.Field != "timezone" {
			warnings[i].Field = fieldBelow(policyRoot, w.Field)
		}
	}
	return warnings
}
