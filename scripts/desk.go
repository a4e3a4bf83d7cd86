package scripts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// Desk is where a batch is decided: the models as they were read, each moving on with the decisions about it.
type Desk struct {
	// Records are the models by uid, also those that are not stored.
	Records map[string]*Record

	policies map[string]policy.Policy
	names    []string          // of all stored policies; only when a command asks for one that is not stored
	queued   map[string]string // attempt uid to entry of the input list; only when a command may supersede one
}

// OpenDesk reads the models with these uids and whatever else the commands about them need. The inline policies of puts are
// stored on the way; to repeat that is safe.
func (s *Store) OpenDesk(ctx context.Context, uids []string, commands []*model.Command) (*Desk, error) {
	records, err := s.Load(ctx, uids)
	if err != nil {
		return nil, err
	}
	desk := &Desk{Records: records}
	if slices.ContainsFunc(commands, func(c *model.Command) bool { return c.Supersedes() }) {
		if desk.queued, err = s.Queued(ctx); err != nil {
			return nil, err
		}
	}
	return desk, s.readPolicies(ctx, desk, commands)
}

// readPolicies reads every policy that a put names.
func (s *Store) readPolicies(ctx context.Context, desk *Desk, commands []*model.Command) error {
	wanted := make(map[string]*policy.Policy)
	for _, command := range commands {
		name, inline := command.Definition.PolicyName, command.Definition.Inline
		if command.Type == model.CommandPut && (inline != nil || wanted[name] == nil) {
			wanted[name] = inline // another put of the batch may use it by its name alone
		}
	}
	names := slices.Sorted(maps.Keys(wanted)) // one order, so that the same batch sends the same commands
	for _, name := range names {
		if wanted[name] == nil {
			continue
		}
		if err := s.SavePolicy(ctx, *wanted[name]); err != nil {
			return err
		}
	}
	var err error
	if desk.policies, err = s.Policies(ctx, names); err != nil || len(desk.policies) == len(names) {
		return err
	}
	desk.names, err = s.PolicyNames(ctx)
	return err
}

// Obey decides a command at now. Applied comes with the transition to apply; any other outcome, or an error about the
// definition, changes nothing. takeBack asks for a superseded attempt that is still queued to be removed from the input list.
func (d *Desk) Obey(command *model.Command, takeBack bool, now time.Time) (*Transition, model.Outcome, error) {
	policy, known := d.policies[command.Definition.PolicyName]
	if command.Type == model.CommandPut && !known {
		want := "a policy, or the name of a stored one (" + strings.Join(d.names, ", ") + ")"
		return nil, model.Unchanged, &document.Error{Field: "policy", Want: want, Found: document.Found(command.Definition.PolicyName)}
	}
	record := d.Records[command.UID]
	entry := d.queued[record.AttemptUID]
	decision, outcome, err := record.Obey(*command, policy, record.Exists, now)
	if err != nil || outcome != model.Applied {
		return nil, outcome, err
	}
	transition := record.Decide(decision, now)
	if takeBack && command.Supersedes() {
		transition.TakeBack = entry
	}
	return transition, model.Applied, nil
}
