package simulation

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/scripts"
)

const queueName = "q"

// server is a miniredis with the clients of one program. It is used by one world after another.
type server struct {
	mini  *miniredis.Miniredis
	read  *goredis.Client // repeats a command after a lost reply, as the client of store.Connect for reads does
	write *goredis.Client // never does
	store *store.Store
	grace [2]*store.Store // one that grants none after an outage, and one that does

	steers bool // operators of its world steer
	few    bool // few fingerprints are kept apart in its world

	fewItems int // up to how many items of a batch are sent without templates

	sources map[string]string // script text by file name
	planted map[string]string // text or sha of a script -> the same of its replacement
	fewer   map[string]string // likewise, where few fingerprints are kept apart

	scripts cache
}

// newServer starts a server in memory; a planted bug, if any, changes one of its scripts.
func newServer(t testing.TB, planted bug) *server {
	t.Helper()
	r := &server{mini: miniredis.NewMiniRedis(), sources: scripts.Sources(), planted: map[string]string{}, fewer: map[string]string{}, scripts: newCache()}
	r.read, r.write = r.client(true), r.client(false)
	t.Cleanup(func() {
		_, _ = r.read.Close(), r.write.Close()
		r.mini.Close()
	})
	if r.fewItems = 12; planted.name != "" && !planted.alone { // a script has its bug where it works with templates, unless it says otherwise
		r.fewItems = store.None
	}
	for i, grace := range []time.Duration{store.None, grace} {
		store, err := store.New(&redis.Clients{Read: r.read, Write: r.write, Block: r.write}, store.Config{Queue: queueName, HistoryCap: historyCap, Grace: grace, FewItems: r.fewItems})
		if err != nil {
			t.Fatal(err)
		}
		r.grace[i] = store
	}
	r.store = r.grace[0]
	r.plant(t, planted)
	return r
}

// client connects without a network: everything happens in this process and nothing waits for a timer.
func (r *server) client(repeats bool) *goredis.Client {
	client := goredis.NewClient(&goredis.Options{
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return r.mini.Dial() },
		PoolSize:                 16, // who watches a key keeps a connection while others go on
		PipelinePoolSize:         -1,
		MaxRetries:               -1, // the wire repeats, so that each repetition is a step
		ReadTimeout:              -2,
		WriteTimeout:             -2,
		ConnMaxIdleTime:          -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	client.AddHook(wire{r, repeats})
	return client
}

// plant replaces one line of one script on the wire: the store sends the honest script, Redis runs the one with the bug. With few
// fingerprints it runs another one yet.
func (r *server) plant(t testing.TB, planted bug) {
	t.Helper()
	file := ""
	if planted.mark != "" {
		file = planted.script(t, r.sources)
	}
	for name, honest := range r.sources {
		text := honest
		if name == file {
			text = replaceLine(t, text, planted.mark, planted.line)
			r.planted[honest], r.planted[digest(honest)] = text, digest(text)
		}
		if name == "txn.lua" {
			text = replaceLine(t, text, mostErrors, fmt.Sprintf("local most_errors = %d", fewErrors))
			r.fewer[honest], r.fewer[digest(honest)] = text, digest(text)
		}
	}
}

// script finds the script with the bug, whichever include has its mark. Where several scripts have such a mark, txn.lua is meant.
func (b bug) script(t testing.TB, sources map[string]string) string {
	t.Helper()
	if b.file != "" {
		return b.file
	}
	var found []string
	for name, text := range sources {
		if strings.Contains(text, " --@ "+b.mark+"\n") {
			found = append(found, name)
		}
	}
	if slices.Contains(found, "txn.lua") {
		return "txn.lua"
	}
	if len(found) != 1 {
		t.Fatalf("expected the mark %q in one script, found it in %d: %s", b.mark, len(found), found)
	}
	return found[0]
}

// replaceLine puts another line in the place of the one that ends with a mark.
func replaceLine(t testing.TB, text, mark, by string) string {
	t.Helper()
	var lines []string
	found := 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasSuffix(line, " --@ "+mark) {
			found++
			line = by
		}
		lines = append(lines, line)
	}
	if found != 1 {
		t.Fatalf("the mark %q stands there %d times, want once", mark, found)
	}
	return strings.Join(lines, "\n")
}

func digest(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// run returns the script that Redis is to run for the one that was sent.
func (r *server) run(script string) string {
	if changed, found := r.fewer[script]; found && r.few {
		return changed
	}
	if changed, found := r.planted[script]; found {
		return changed
	}
	return script
}

// loadScripts connects and loads, which is no step of any actor.
func (r *server) loadScripts() error {
	ctx := context.Background()
	if err := r.read.Ping(ctx).Err(); err != nil {
		return err
	}
	if err := r.write.ScriptFlush(ctx).Err(); err != nil {
		return err
	}
	for _, source := range r.sources {
		if err := r.write.ScriptLoad(ctx, source).Err(); err != nil {
			return err
		}
	}
	return nil
}

// cache are the scripts that Redis knows. Miniredis keeps those it has read: to read all scripts anew in each world, and after each mishap that
// empties the cache, was a quarter of what a world costs.
type cache struct {
	read  map[string]bool // digests of those that miniredis keeps
	known map[string]bool // of those that Redis knows
}

func newCache() cache { return cache{map[string]bool{}, map[string]bool{}} }

// execute answers for the cache, and passes all else on.
func (c cache) execute(ctx context.Context, command goredis.Cmder, next goredis.ProcessHook) error {
	args := command.Args()
	switch about := fmt.Sprint(args[min(1, len(args)-1)]); {
	case command.Name() == "script" && about == "flush":
		clear(c.known)
		return nil
	case command.Name() == "script" && about == "load":
		sum := digest(fmt.Sprint(args[2]))
		if c.known[sum] = true; c.read[sum] {
			return nil
		}
		c.read[sum] = true
	case command.Name() == "evalsha" && !c.known[about]:
		command.SetErr(refusal("NOSCRIPT No matching script. Please use EVAL."))
		return command.Err()
	}
	return next(ctx, command)
}

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
	claimed                map[string][]string // by poller, and the command queue by its name
	numbered               map[string][]string // claimed, with the numbers of commands
	heard                  map[string]string   // what pollers and dispatchers note of it
	changes                string              // how many there were of what operators set
	ordered                map[string]string   // with the numbers of the last commands about the queue
	leader                 string              // of the command queue
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
		models: map[string]map[string]string{}, payloads: map[string]string{}, claimed: map[string][]string{}, numbered: map[string][]string{}, histories: map[string][]string{},
		due: r.scores(k.Due), urgent: r.scores(k.Urgent), running: r.scores(k.Running), pollers: r.scores(k.Pollers),
		front: r.list(k.Front), heard: r.hash(k.Heard),
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
	s.leader, _ = r.mini.Get(k.Leader)
	for _, owner := range append(slices.Clip(owners), store.CommandOwner) {
		if entries := r.list(k.Claimed(owner)); len(entries) > 0 {
			s.numbered[owner], s.claimed[owner] = entries, unnumbered(slices.Clone(entries))
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
		for name := range strings.FieldsSeq(entry["gone"]) {
			entry[name] = ""
		}
		for name := range strings.FieldsSeq(entry["now"]) {
			entry[name] = entry["at"]
		}
		entries = append(entries, entry)
	}
	return entries
}

// unnumbered marks commands as in snapshot.messages, without their numbers.
func unnumbered(entries []string) []string {
	for i, entry := range entries {
		if strings.HasPrefix(entry, "n") {
			entries[i] = "c" + store.Claimed{Entry: entry}.Raw()
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

// entries lists every entry that waits for a worker or is in the list of one.
func (s *snapshot) entries() []string {
	all := slices.Clone(s.input)
	for _, pool := range slices.Sorted(maps.Keys(s.taken)) {
		all = append(all, s.taken[pool]...)
	}
	return all
}
