package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/refreshd/refreshd/model/policy"
)

// DefaultPolicyName is the stored policy that serves models which name none; the built-in one serves until somebody stores it.
const DefaultPolicyName = policy.DefaultName

// policyCache keeps compiled policies by their stored text, so that a million models share a few. It takes at most about 32 MB; beyond,
// it starts anew, which costs one parse per policy in use.
type policyCache struct {
	mu     sync.Mutex
	byText map[string]policy.Policy
	bytes  int // that they take, by cachedSize

	last []string // names of the policies of the models that were read last
}

// maxGuessed bounds how many policies are read with models before anybody knows which they use.
const maxGuessed = 50

// guess names the policies that the models which are read next may use: those that were used last.
func (c *policyCache) guess() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{""}, c.last...)
}

func (c *policyCache) guessNext(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = slices.DeleteFunc(slices.Clone(names[:min(len(names), maxGuessed)]), func(name string) bool { return name == "" })
}

// maxCachedPolicies bounds the cache, in bytes.
const maxCachedPolicies = 32 << 20

// cachedSize is about how much memory a cached policy takes, in bytes: its text, the values that were read of it, the entry of the map,
// and what is compiled.
func cachedSize(text string, p *policy.Policy) int { return 3*len(text) + 512 + p.CompiledSize() }

func (c *policyCache) parse(text string) (policy.Policy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if policy, found := c.byText[text]; found {
		return policy, nil
	}
	var value any
	var p policy.Policy
	err := json.Unmarshal([]byte(text), &value)
	if err == nil {
		p, err = policy.ParseStored(value)
	}
	if err != nil {
		return p, Wrap(err, "read stored policy")
	}
	size := cachedSize(text, &p)
	if c.byText == nil || c.bytes+size > maxCachedPolicies {
		c.byText, c.bytes = make(map[string]policy.Policy), 0
	}
	c.byText[text] = p
	c.bytes += size
	return p, nil
}

// Policies reads stored policies by name; the empty name is the default policy. A name that is missing in the result is not
// stored, or its text cannot be read.
func (s *Store) Policies(ctx context.Context, names []string) (map[string]policy.Policy, error) {
	if len(names) == 0 {
		return map[string]policy.Policy{}, nil
	}
	texts, err := s.Clients.Read.HMGet(ctx, s.Keys.Policies(), policyFields(names)...).Result()
	if _, is := Misfit(err); is {
		if types, failed := s.Report().Types(ctx, []string{s.Keys.Policies()}); failed == nil {
			err = fmt.Errorf("%s holds a %s, expected a hash: %w", s.Keys.Policies(), types[0], err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	return s.compile(names, texts), nil
}

// policyFields are the names under which policies are stored.
func policyFields(names []string) []string {
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = cmp.Or(name, DefaultPolicyName)
	}
	return fields
}

// compile reads the texts of policies, as Redis has answered for their fields; none: nothing was answered.
func (s *Store) compile(names []string, texts []any) map[string]policy.Policy {
	policies := make(map[string]policy.Policy, len(names))
	for i, text := range texts {
		name := names[i]
		text, stored := text.(string)
		if p, err := s.policies.parse(text); stored && err == nil {
			policies[name] = p
		} else if !stored && cmp.Or(name, DefaultPolicyName) == DefaultPolicyName {
			policies[name] = policy.Default()
		}
	}
	return policies
}

// ParsePolicy reads the text of a stored policy.
func (s *Store) ParsePolicy(text string) (policy.Policy, error) { return s.policies.parse(text) }
