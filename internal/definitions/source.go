package definitions

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Source is a policy from a file, standard input or Redis.
type Source struct {
	Document
	Policy policy.Policy // whole
	Draft  policy.Draft  // of a policy that is not stored
}

// Taken lists the fields that come at least partly from the policy `default`.
func (s *Source) Taken() []string {
	if s.Stored || s.Draft.Name() == policy.DefaultName {
		return nil
	}
	var stored map[string]any         // without empty fields
	text, _ := json.Marshal(s.Policy) // a policy always marshals
	_ = json.Unmarshal(text, &stored)
	return slices.DeleteFunc(s.Draft.Missing(), func(field string) bool { return stored[field] == nil })
}

// ReadAs returns how a policy or rule in English was read; nil: it was not in English.
func (s *Source) ReadAs(now time.Time) *schedule.ParsedAs {
	if !s.English && !s.InWords() {
		return nil
	}
	read, _ := (&model.Model{Policy: s.Policy}).ReadAs(now) // it was parsed, or there is no rule
	if s.English {
		read.Sentence = strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(English(s.Policy), "- ")), "\n- ", ". ")
	}
	return &read
}

// Drafts reads policies that came from a file, or are stored under that name.
func Drafts(docs []Document, from string) ([]Source, error) {
	sources := make([]Source, len(docs))
	for i, doc := range docs {
		s := &sources[i]
		s.Document = doc
		var err error
		if s.Stored {
			s.Policy, err = policy.ParseStored(doc.Value)
			s.Policy.Name = from
		} else {
			s.Draft, err = policy.Read(doc.Value)
		}
		if err != nil {
			return nil, doc.At(err)
		}
	}
	return sources, nil
}

// Complete completes policies with the policy `default` among them, or else with the usual one.
func Complete(sources []Source, usual func() (policy.Policy, error)) error {
	read := sync.OnceValues(usual)
	for i := range sources {
		if s := &sources[i]; !s.Stored && s.Draft.Name() == policy.DefaultName {
			own, err := s.Draft.Complete(policy.Default())
			if err != nil {
				return s.At(err)
			}
			read = func() (policy.Policy, error) { return own, nil }
		}
	}
	for i := range sources {
		s := &sources[i]
		if s.Stored {
			continue
		}
		var base policy.Policy
		var err error
		if s.Draft.Name() != policy.DefaultName && len(s.Draft.Missing()) > 0 {
			if base, err = read(); err != nil {
				return err
			}
		}
		if s.Policy, err = s.Draft.Complete(base); err != nil {
			return s.At(err)
		}
	}
	return nil
}

// Subject is a model to simulate, or a policy with a model made up for it.
type Subject struct {
	Document
	Name       string // for people
	Model      bool   // it was written as one
	Definition model.Definition
	Policy     policy.Policy
}

const unnamed = "simulated"

// ReadSubject reads what to simulate: a document with uid, payload or policy is a model, any other a policy. from is its name if it has none, or the
// name of a stored policy. find reads a policy by name, usual is the one that completes others.
func ReadSubject(doc Document, from string, usual func() policy.Policy, find func(name string) (policy.Policy, error)) (Subject, error) {
	s := Subject{Document: doc, Name: from}
	fields, _ := s.Value.(map[string]any)
	isModel := slices.ContainsFunc([]string{"uid", "payload", "policy"}, func(field string) bool { _, found := fields[field]; return found })
	s.Model = isModel && !s.Stored
	if !s.Model {
		sources, err := Drafts([]Document{doc}, from)
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
