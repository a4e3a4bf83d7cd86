// Package transfer moves models between queues as JSON lines, with all that a queue knows of them and the
// calendars, limits and policies that they go by, while daemons run on both sides.
package transfer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// Export writes models as JSON lines, sorted by uid, after the settings that they need. The same state of a queue gives the same bytes, with any
// number of parts and any Redis.
type Export struct {
	Queue    *store.Queue
	Selector model.Selector
	// State: all that the queue knows of the models is written too, and first of all calendars, limits, and the policies that they use.
	State bool
	// Fault receives a line for each thing that cannot be exported, or only in part.
	Fault func(text string)
}

const exportChunk = 500

// Write walks over the models twice: at first only their uids are kept, and the names of their policies. A model that is removed between
// the two is left out, and so is one that is put.
func (e *Export) Write(ctx context.Context, to io.Writer) error {
	uids, policies, err := e.find(ctx)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(to, 1<<16)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	if e.State {
		if err := e.writeFlow(ctx, lines); err != nil {
			return err
		}
		if err := e.writePolicies(ctx, slices.Sorted(maps.Keys(policies)), lines); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(uids, exportChunk) {
		if err := e.writeModels(ctx, chunk, lines); err != nil {
			return err
		}
	}
	return out.Flush()
}

// find returns the uids of the models, sorted, and the names under which the policies are stored that they share.
func (e *Export) find(ctx context.Context) (uids []string, policies map[string]bool, err error) {
	policies = make(map[string]bool)
	take := func(part *store.Store, uid, policyName string) {
		home, own := part.Home(uid)
		if !own { // no daemon knows it there
			e.Fault(fmt.Sprintf("%s: expected it in %s, found it in %s; refreshd doctor has more", uid, home.Queue, part.Keys.Queue))
			return
		}
		if uids = append(uids, uid); !policy.IsInline(policyName) {
			policies[cmp.Or(policyName, policy.DefaultName)] = true
		}
	}
	err = e.Queue.Each(func(part *store.Store) error {
		if !e.Selector.All() {
			return part.Report().EachPicked(ctx, e.Selector, func(r *store.Record) error { take(part, r.UID, r.PolicyName); return nil })
		}
		return part.Report().Walk(ctx, model.Selector{}, func(found []string) (err error) {
			names := make([]string, len(found))
			if e.State {
				if names, err = part.Report().PoliciesOf(ctx, found); err != nil {
					return err
				}
			}
			for i, uid := range compact(found) {
				take(part, uid, names[i])
			}
			return nil
		})
	})
	slices.Sort(uids)
	return slices.Compact(uids), policies, err // a walk may come twice by a model
}

// compact puts texts into one piece of memory, without the longer ones that they were a part of.
func compact(texts []string) []string {
	all := strings.Join(texts, "")
	for i, text := range texts {
		texts[i], all = all[:len(text)], all[len(text):]
	}
	return texts
}

// writePolicies writes stored policies. The policy default is written also where it is the built-in one, as a queue may have another.
func (e *Export) writePolicies(ctx context.Context, names []string, lines *json.Encoder) error {
	stored, err := e.Queue.Parts[0].Policies(ctx, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		p, found := stored[name]
		if !found {
			e.Fault(fmt.Sprintf("policy %s: expected one that is stored and can be read, found none; its models run under the policy %s", name, policy.DefaultName))
			continue
		}
		p.Name = ""
		if err := lines.Encode(policyLine{kindPolicy, name, p.Explicit()}); err != nil {
			return err
		}
	}
	return nil
}

// writeModels writes the models with these uids, in that order, each as it was at one instant.
func (e *Export) writeModels(ctx context.Context, uids []string, lines *json.Encoder) error {
	found := make(map[string]*store.Export, len(uids))
	own := map[string]policy.Policy{} // those that belong to one model each
	for part, here := range store.ByPart(e.Queue, uids, func(uid string) string { return uid }) {
		exports, err := part.Report().Export(ctx, here)
		names := map[string]bool{}
		for i := range exports {
			if found[exports[i].Record.UID] = &exports[i]; policy.IsInline(exports[i].Record.PolicyName) {
				names[exports[i].Record.PolicyName] = true
			}
		}
		var policies map[string]policy.Policy
		if err == nil {
			policies, err = part.Policies(ctx, slices.Collect(maps.Keys(names)))
		}
		if err != nil {
			return e.Queue.PartError(part, err)
		}
		maps.Copy(own, policies)
	}
	for _, uid := range uids {
		one := found[uid]
		if one == nil {
			continue
		}
		if one.Fault != "" {
			e.Fault(uid + ": " + one.Fault)
		}
		if one.Record.Broken {
			continue
		}
		if err := lines.Encode(newModelLine(one, own, e.State)); err != nil {
			return fmt.Errorf("%s: %w", uid, err)
		}
	}
	return ctx.Err()
}
