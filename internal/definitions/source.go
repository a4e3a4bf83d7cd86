package definitions

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Source is one policy as somebody wrote it: in a file, on standard input, or in Redis.
type Source struct {
	Document
	Policy policy.Policy // whole
	Stored bool          // it came from Redis

	Draft policy.Draft // what was written, if it came from elsewhere
}

// Taken lists the fields of which the policy has something from the policy `default`.
func (s *Source) Taken() []string {
	if s.Stored || s.Draft.Name() == policy.DefaultName {
		return nil
	}
	var stored map[string]any         // the fields that say something
	text, _ := json.Marshal(s.Policy) // a policy always marshals
	_ = json.Unmarshal(text, &stored)
	return slices.DeleteFunc(s.Draft.Missing(), func(field string) bool { return stored[field] == nil })
}

// ReadAs tells how a policy was read that was written in English, or its rule; nil: it was not.
func (s *Source) ReadAs(now time.Time) *schedule.Understood {
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
func Drafts(docs []Document, from string, stored bool) ([]Source, error) {
	sources := make([]Source, len(docs))
	for i, doc := range docs {
		s := &sources[i]
		s.Document, s.Stored = doc, stored
		var err error
		if stored {
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
