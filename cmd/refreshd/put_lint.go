package main

import (
	"strings"
	"time"
)

// putLinter warns of what is seldom meant in saved models, once for each schedule and policy: a million models share few.
type putLinter struct {
	known map[lintedDefinition]bool
}

type lintedDefinition struct {
	rule, timezone, policy string
	anchored               bool
}

// maxLinted bounds what is remembered, and with it the time that is spent on models that are all different.
const maxLinted = 1000

// look returns the warnings about a model that an order has saved, each with its place.
func (l *putLinter) look(o *order, now time.Time) []string {
	if o.saved == nil || o.refused != nil || len(l.known) >= maxLinted {
		return nil
	}
	definition := lintedDefinition{o.saved.Rule, o.saved.Timezone, o.saved.PolicyName, o.command.Definition.Dtstart != ""}
	if l.known[definition] {
		return nil
	}
	if l.known == nil {
		l.known = make(map[lintedDefinition]bool)
	}
	l.known[definition] = true
	var warnings []string
	for _, w := range o.saved.Lint(definition.anchored, now) {
		field := w.Field
		if !modelField(field) {
			field = "policy." + field
		}
		place := o.command.UID
		if o.place != nil {
			place = o.place(field)
		}
		warnings = append(warnings, place+": "+field+": "+w.Text)
	}
	return warnings
}

// modelField reports whether a warning is about a field of the model itself, and not of its policy.
func modelField(field string) bool {
	return strings.HasPrefix(field, "rrule") || field == "dtstart" || field == "timezone"
}
