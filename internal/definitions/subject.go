package definitions

import (
	"cmp"
	"slices"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// Subject is a model to simulate, or a policy with a model made up for it.
type Subject struct {
	Document
	Name       string // for people
	Definition model.Definition
	Policy     policy.Policy
}

const unnamed = "simulated"

// ReadSubject reads what is to be simulated: a document with uid, payload or policy is a model, any other a policy. from is what it is called if it
// has no name; stored: it is a policy that is stored under that. find reads a policy by its name, usual the one that completes others.
func ReadSubject(doc Document, from string, stored bool, usual func() policy.Policy, find func(name string) (policy.Policy, error)) (Subject, error) {
	s := Subject{Document: doc, Name: from}
	fields, _ := s.Value.(map[string]any)
	isModel := slices.ContainsFunc([]string{"uid", "payload", "policy"}, func(field string) bool { _, found := fields[field]; return found })
	if stored || !isModel {
		sources, err := Drafts([]Document{doc}, from, stored)
		if err == nil {
			err = Complete(sources, func() (policy.Policy, error) { return usual(), nil })
		}
		if err != nil {
			return s, err
		}
		s.Policy, s.Definition = sources[0].Policy, model.Definition{UID: unnamed, Payload: "{}"}
		s.Name = cmp.Or(s.Policy.Name, from)
		return s, nil
	}
	if fields["uid"] == nil {
		fields["uid"] = unnamed
	}
	var err error
	if s.Definition, err = model.ParseDefinition(fields); err != nil {
		return s, s.At(err)
	}
	if s.Definition.UID != unnamed {
		s.Name = s.Definition.UID
	}
	policies := model.Policies{ByName: make(map[string]policy.Policy)}
	switch d := &s.Definition; {
	case d.Partial():
		d.Complete(usual())
	case d.Inline != nil:
	case d.PolicyName == "":
		policies.ByName[""] = usual()
	default:
		policies.ByName[d.PolicyName], err = find(d.PolicyName)
	}
	if err != nil {
		return s, err
	}
	if s.Policy, err = policies.Find(&s.Definition); err != nil {
		return s, s.At(err)
	}
	return s, nil
}
