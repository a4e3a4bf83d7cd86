package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// subject is what is simulated: a model, or a policy with a model made up for it.
type subject struct {
	name       string // for people
	definition model.Definition
	policy     policy.Policy
	at         func(error) error // places an error
}

// readSubjects reads what the flags name: one, or two to compare.
func (a *app) readSubjects(ctx context.Context, s *simulation) ([]*subject, error) {
	var subjects []*subject
	for _, from := range []string{s.policy, s.against} {
		if from == "" {
			continue
		}
		subject, err := a.readSubject(ctx, from)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, subject)
	}
	if len(subjects) == 2 && subjects[0].name == subjects[1].name {
		subjects[0].name, subjects[1].name = s.policy, s.against
	}
	return subjects, nil
}

func (a *app) readSubject(ctx context.Context, from string) (*subject, error) {
	name, docs, _, err := a.readDocuments(ctx, from)
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("%s: expected one policy or model, found %d", name, len(docs))
	}
	subject := &subject{name: from, at: docs[0].At}
	if fields, ok := docs[0].Value.(map[string]any); ok && isModel(fields) {
		return subject, a.readModel(ctx, subject, fields)
	}
	return subject, subject.readPolicy(docs[0].Value)
}

// isModel tells the document of a model from that of a policy.
func isModel(fields map[string]any) bool {
	for _, name := range []string{"uid", "payload", "policy"} {
		if _, found := fields[name]; found {
			return true
		}
	}
	return false
}

func (s *subject) readPolicy(value any) (err error) {
	if s.policy, err = policy.Parse(value); err != nil {
		return s.at(err)
	}
	s.definition = model.Definition{UID: unnamed, Payload: "{}"}
	if s.policy.Name != "" {
		s.name = s.policy.Name
	}
	return nil
}

func (a *app) readModel(ctx context.Context, s *subject, fields map[string]any) (err error) {
	if fields["uid"] == nil {
		fields = maps.Clone(fields)
		fields["uid"] = unnamed
	}
	if s.definition, err = model.ParseDefinition(fields); err != nil {
		return s.at(err)
	}
	if s.definition.UID != unnamed {
		s.name = s.definition.UID
	}
	switch {
	case s.definition.Inline != nil:
		s.policy = *s.definition.Inline
		return nil
	case s.definition.PolicyName == "":
		s.policy = policy.Default()
		return nil
	}
	stored, err := a.readStored(ctx, s.definition.PolicyName)
	if err != nil {
		return err
	}
	if s.policy, err = policy.Parse(stored.Value); err != nil {
		return stored.At(err)
	}
	s.policy.Name = s.definition.PolicyName
	return nil
}

// zone is that of the schedule, so that a wall clock time can be read before the model is made.
func (s *subject) zone() *time.Location {
	return zoneOf(&model.Model{Rule: s.definition.Rule, Timezone: s.definition.Timezone, Policy: s.policy})
}

// model saves the definition at an instant, as the daemons would.
func (s *subject) model(now time.Time) (*model.Model, error) {
	decision, _, err := new(model.Model).Put(s.definition, s.policy, false, now)
	if err != nil {
		return nil, s.at(err)
	}
	saved := *decision.Definition
	saved.State = decision.Next
	return &saved, nil
}
