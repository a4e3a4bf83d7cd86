package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Snapshot is what a batch is decided on: the models as they were read, each moving on with the decisions about it.
type Snapshot struct {
	// Records are the models by uid, also those that are not stored.
	Records map[string]*Record
	// Policies are those that the commands name, and those that they bring along.
	Policies model.Policies
}

// Read reads the models with these uids, and whatever else the commands about some of them need: only these have their payload.
func (s *Store) Read(ctx context.Context, uids []string, commands []*model.Command) (*Snapshot, error) {
	whole := make([]string, len(commands))
	for i, command := range commands {
		whole[i] = command.UID
	}
	records, err := s.load(ctx, uids, whole)
	if err != nil {
		return nil, err
	}
	policies, err := s.readPolicies(ctx, commands)
	return &Snapshot{records, policies}, err
}

// readPolicies reads every policy that a put names, and the policy `default` for those that they bring along. One that another put of
// the batch brings along may be named too.
func (s *Store) readPolicies(ctx context.Context, commands []*model.Command) (policies model.Policies, err error) {
	var names []string
	for _, command := range commands {
		switch d := &command.Definition; {
		case command.Type != model.CommandPut:
		case d.Inline == nil:
			names = append(names, d.PolicyName)
		case d.Partial():
			names = append(names, "")
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if policies.ByName, err = s.Policies(ctx, names); err != nil {
		return policies, err
	}
	usual, readable := policies.ByName[""]
	for _, command := range commands {
		if d := &command.Definition; command.Type == model.CommandPut && d.Inline != nil {
			if readable {
				d.Complete(usual)
			}
			policies.ByName[d.PolicyName] = *d.Inline
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { _, found := policies.ByName[name]; return !found }) {
		policies.Stored, err = s.Report().PolicyNames(ctx)
	}
	return policies, err
}

// Apply turns the decision about a command into the transition to commit.
func (s *Snapshot) Apply(command *model.Command, decision model.Decision, now time.Time) *Transition {
	return s.Records[command.UID].Decide(decision, now)
}

// Queued reads the input list, all of it at one instant: attempt uid to the entry as it stands there.
func (s *Store) Queued(ctx context.Context) (map[string]string, error) {
	entries, err := s.Clients.Read.LRange(ctx, s.Keys.Input, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read queued attempts: %w", err)
	}
	queued := make(map[string]string, len(entries))
	for _, raw := range entries {
		if entry, _ := s.Wire().ParseEntry(raw); entry.AttemptUID != "" {
			queued[entry.AttemptUID] = raw
		}
	}
	return queued, nil
}
