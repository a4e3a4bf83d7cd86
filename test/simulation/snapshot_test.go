package simulation

import (
	"maps"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/internal/store"
)

// snapshot is all that Redis holds of the queue at one instant.
type snapshot struct {
	models                 map[string]map[string]string
	payloads               map[string]string
	policies, uses         map[string]string
	replanning             bool // the models of the shared policy are being planned anew
	due, urgent            map[string]float64
	running, pollers       map[string]float64
	input, output, control []string
	front                  []string
	claimed                map[string][]string // by poller, and the lane by its name
	changes                string              // how many there were of what operators set
	ordered                map[string]string   // with the numbers of the last commands about the queue
	holder                 string              // of the lane
	taken                  map[string][]string // by worker pool
	workers                map[string]float64
	stats, queueCircuit    map[string]string
	histories              map[string][]string // by model
	wake                   int                 // calls to dispatchers

	// What was written since the last snapshot: these keys are emptied when they have been read.
	journal, outbox []map[string]string
	rejected        []string
	replies         []string

	ids map[string]float64 // of commands

	steered
}

// look reads the queue from behind the server. owners and pools are all pollers and worker pools that there ever were.
func (r *server) look(uids, owners, pools []string) *snapshot {
	k := r.store.Keys
	s := &snapshot{
		models: map[string]map[string]string{}, payloads: map[string]string{}, claimed: map[string][]string{}, histories: map[string][]string{},
		due: r.scores(k.Due), urgent: r.scores(k.Urgent), running: r.scores(k.Running), pollers: r.scores(k.Pollers),
		front: r.list(k.Front),
		input: r.list(k.Input), output: r.list(k.Output), control: r.list(k.Control),
		stats: r.hash(k.Stats), policies: r.hash(k.Policies), uses: r.hash(k.PolicyUses), taken: map[string][]string{}, workers: r.scores(k.Workers),
		queueCircuit: r.hash(k.QueueCircuit), wake: len(r.list(k.Wake)),
		ids: r.scores(k.Commands), changes: r.hash(k.Forwarded)["changes"], ordered: r.hash(k.Forwarded), steered: r.lookAround(r.steers),
	}
	for _, uid := range uids {
		if hash := r.hash(k.Model(uid)); len(hash) > 0 {
			s.models[uid] = hash
		}
		if payload, err := r.mini.Get(k.Payload(uid)); err == nil {
			s.payloads[uid] = payload
		}
		if history := r.list(k.History(uid)); len(history) > 0 {
			s.histories[uid] = history
		}
	}
	replan := r.hash(k.Bulk(store.ReplanID(sharedPolicy)))
	s.replanning = len(replan) > 0 && replan["ended"] == ""
	s.holder, _ = r.mini.Get(k.Leader)
	for _, owner := range append(slices.Clip(owners), store.CommandOwner) {
		if entries := r.list(k.Claimed(owner)); len(entries) > 0 {
			s.claimed[owner] = unnumbered(entries)
		}
	}
	for _, pool := range pools {
		if entries := r.list(k.Taken(pool)); len(entries) > 0 {
			s.taken[pool] = entries
		}
	}
	s.journal, s.outbox, s.rejected, s.replies = r.stream(k.Journal), r.stream(k.Outbox), r.list(k.Rejected), r.list(k.Reply(replyName))
	for _, key := range []string{k.Journal, k.Outbox, k.Rejected, k.Reply(replyName)} {
		r.mini.Del(key)
	}
	return s
}

func (r *server) hash(key string) map[string]string {
	names, _ := r.mini.HKeys(key)
	hash := make(map[string]string, len(names))
	for _, name := range names {
		hash[name] = r.mini.HGet(key, name)
	}
	return hash
}

func (r *server) scores(key string) map[string]float64 {
	scores, _ := r.mini.SortedSet(key)
	return maps.Clone(scores)
}

func (r *server) list(key string) []string {
	entries, _ := r.mini.List(key)
	return slices.Clone(entries)
}

func (r *server) stream(key string) (entries []map[string]string) {
	stream, _ := r.mini.Stream(key)
	for _, item := range stream {
		entry := make(map[string]string, len(item.Values)/2)
		for pair := range slices.Chunk(item.Values, 2) {
			entry[pair[0]] = pair[1]
		}
		entries = append(entries, entry)
	}
	return entries
}

// unnumbered marks commands as they are marked before they have numbers.
func unnumbered(entries []string) []string {
	for i, entry := range entries {
		if claimed := (store.Claimed{Entry: entry}); claimed.Numbered() {
			entries[i] = "c" + claimed.Raw()
		}
	}
	return entries
}

// messages counts every message that has arrived and is not handled yet, with the mark of its source.
func (s *snapshot) messages() map[string]int {
	counts := map[string]int{}
	for _, message := range s.output {
		counts["o"+message]++
	}
	for _, message := range s.control {
		counts["c"+message]++
	}
	for _, entries := range s.claimed {
		for _, entry := range entries {
			counts[entry]++
		}
	}
	return counts
}

// grown is how much a counter has grown since another snapshot.
func (s *snapshot) grown(since *snapshot, counter string) int {
	before, _ := strconv.Atoi(since.stats[counter])
	after, _ := strconv.Atoi(s.stats[counter])
	return after - before
}

// entries lists every entry that waits for a worker or stands in the list of one.
func (s *snapshot) entries() []string {
	all := slices.Clone(s.input)
	for _, pool := range slices.Sorted(maps.Keys(s.taken)) {
		all = append(all, s.taken[pool]...)
	}
	return all
}
