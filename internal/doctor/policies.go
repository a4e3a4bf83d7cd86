package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/scripts"
)

// storedPolicies reads every stored policy before the models, so that one that is stored with its model is known.
func (e *examination) storedPolicies(ctx context.Context) error {
	if !e.readable(e.store.Keys.Policies()) {
		return nil
	}
	return e.store.EachPolicy(ctx, func(name, problem string) {
		if _, twice := e.policies[name]; twice {
			return
		}
		e.policies[name] = problem == ""
		if problem != "" {
			e.note(Finding{Error, "policy-unreadable", name, "a policy", problem, byHand("store it again with refreshd policy put; its models run under the default policy"), false})
		}
	})
}

// inline begins the names of policies that were saved with a model, and not by a name of their own.
const inline = "inline-"

// usedPolicies compares the names that models use with what is stored.
func (e *examination) usedPolicies(ctx context.Context) error {
	if err := e.missingPolicies(ctx); err != nil {
		return err
	}
	unused := 0
	for name := range e.policies {
		if _, used := e.used[name]; strings.HasPrefix(name, inline) && !used {
			unused++
		}
	}
	if unused > 0 {
		e.note(Finding{Info, "policy-unused", e.store.Keys.Policies(), "inline policies that models use", fmt.Sprintf("%d that none uses any more", unused), "", false})
	}
	return nil
}

func (e *examination) missingPolicies(ctx context.Context) error {
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(e.used)) {
		if _, stored := e.policies[name]; !stored && name != "" && name != scripts.DefaultPolicyName {
			unknown = append(unknown, name)
		}
	}
	// Those that were stored since the examination began are none.
	for chunk := range slices.Chunk(unknown, inputPart) {
		stored, err := e.store.Policies(ctx, chunk)
		if err != nil && e.readable(e.store.Keys.Policies()) {
			return err
		}
		for _, name := range chunk {
			if _, found := stored[name]; found {
				continue
			}
			u := e.used[name]
			e.note(Finding{Error, "policy-missing", name, "the name of a stored policy", fmt.Sprintf("none of that name, but %d models that use it, such as %s", u.models, u.example),
				byHand("store it with refreshd policy put; its models run under the default policy"), false})
		}
	}
	return nil
}
