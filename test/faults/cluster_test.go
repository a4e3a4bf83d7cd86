package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

const (
	spreadParts  = 8
	spreadModels = 1_600
	spreadEvery  = 8 // seconds between two refreshes of a model: 200 of them a second, which a busy machine can do beside moving slots
)

// spread is a queue of several parts on a Redis Cluster, under load. Each part is a drill with the models that live there.
type spread struct {
	*drill // of the first part, for everything that all share
	server *testkit.Server
	queue  *store.Queue
	parts  []*drill
	crew   *daemonGroup // workers
	log    spreadLog
}

type spreadLog struct {
	mu     sync.Mutex
	popped map[string]time.Time // guarded by mu: when a worker first had an attempt
	acked  map[string]time.Time // guarded by mu: when Redis first acknowledged its result
}

func (l *spreadLog) note(in map[string]time.Time, attempt string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := in[attempt]; !known {
		in[attempt] = time.Now()
	}
}

func newSpread(t *testing.T) *spread {
	t.Helper()
	server := testkit.ReplicatedCluster(t)
	address := "redis-cluster://" + server.Addrs[0] + "," + server.Addrs[1] + "," + server.Addrs[5]
	s := &spread{server: server, log: spreadLog{popped: map[string]time.Time{}, acked: map[string]time.Time{}}}
	clients := fixture.Connect(t, address)
	ctx, stop := context.WithTimeout(context.Background(), check.Limit)
	s.crew = newDaemonGroup(ctx, t)
	t.Cleanup(func() { stop(); s.crew.stop() })
	config := store.Config{Queue: "bigtables"}
	err := store.Create(ctx, clients, config, spreadParts)
	if err == nil {
		s.queue, err = store.Open(ctx, clients, config)
	}
	must(t, err)
	load := policy.Policy{
		Name: "load", Rule: fmt.Sprintf("FREQ=SECONDLY;INTERVAL=%d", spreadEvery), Spread: (spreadEvery - 1) * time.Second,
		Timeout: 10 * time.Second, Alignment: policy.AlignPlanned, OnExhausted: policy.NextPlanned,
	}
	for _, part := range s.queue.Parts {
		s.parts = append(s.parts, &drill{t: t, ctx: ctx, address: address, clients: clients, store: part, policy: load})
	}
	s.drill = s.parts[0]
	for i := range spreadModels {
		uid := fmt.Sprint("m", i)
		home := s.parts[store.PartOf(uid, spreadParts)]
		home.uids = append(home.uids, uid)
	}
	return s
}

// save pushes the models to whatever part comes next, as an application does that knows nothing of hashes.
func (s *spread) save() {
	s.t.Helper()
	s.check("store the policy", s.queue.Fleet().PutPolicy(s.ctx, s.policy))
	for first := 0; first < spreadModels; first += 500 {
		pipe := s.clients.Write.Pipeline()
		for i := first; i < min(first+500, spreadModels); i++ {
			pipe.RPush(s.ctx, s.queue.Parts[i%spreadParts].Keys.Control, s.put(fmt.Sprint("m", i), 0))
		}
		_, err := pipe.Exec(s.ctx)
		s.check("push commands", err)
	}
	s.untilCounted(string(model.EventCreate), spreadModels)
}

// put is the command that saves a version of a model.
func (s *spread) put(uid string, version int) []byte {
	command, err := json.Marshal(map[string]any{"type": "put", "uid": uid, "policy": s.policy.Name, "payload": map[string]any{"version": version}})
	s.check("encode a command", err)
	return command
}

func (s *spread) counted(name string) (sum int64, err error) {
	for _, part := range s.queue.Parts {
		stats, err := report.Of(part).Stats(s.ctx)
		if err != nil {
			return 0, err
		}
		sum += stats.Counters[name]
	}
	return sum, nil
}

func (s *spread) untilCounted(name string, count int64) {
	s.t.Helper()
	s.until(name, func() (bool, error) {
		sum, err := s.counted(name)
		return sum >= count, err
	})
}

// progress waits until so many more results have been applied.
func (s *spread) progress(count int64) {
	s.t.Helper()
	var before int64
	s.until("the counters", func() (ok bool, err error) { before, err = s.counted(string(model.EventSuccess)); return true, err })
	s.untilCounted(string(model.EventSuccess), before+count)
}

// work runs a foreign worker for each input list, which answers as the entries say, and a pool of our own for all.
func (s *spread) work() {
	queues := make([]worker.Queue, spreadParts)
	for i, part := range s.queue.Parts {
		queues[i] = part.Pool()
		s.crew.run(func(ctx context.Context) error {
			return serve(ctx, s.clients.Block, part.Keys.Input, 50, func(e entry) {
				failIf(s.t, e.ReplyTo == "", "want an entry that says where to answer, got %+v", e)
				s.log.note(s.log.popped, e.AttemptUID)
				push(ctx, s.clients.Write, e.ReplyTo, model.EventSuccess, e, func(_ time.Time, err error) {
					if err == nil {
						s.log.note(s.log.acked, e.AttemptUID)
					}
				})
			})
		})
	}
	pool, err := worker.NewForParts(queues, func(_ context.Context, a *worker.Attempt) error {
		s.log.note(s.log.popped, a.AttemptUID)
		return nil
	}, worker.Config{Concurrency: 50, MaxBackoff: time.Second})
	s.check("open a worker pool", err)
	s.crew.run(pool.Run)
}

// failover kills the master of a part, and saves some of its models meanwhile, by lists of other masters. It returns them, and between which
// instants what Redis acknowledged may be gone.
func (s *spread) failover(part int) (saved []string, from, to time.Time) {
	s.t.Helper()
	key := s.queue.Parts[part].Keys.Due
	from = time.Now().Add(-time.Second) // the replica may lag behind
	killed := killMaster(s.t, s.server, key)
	saved = s.parts[part].uids[20:40]
	for _, version := range []int{1, 2, 3} {
		for i, uid := range saved {
			s.pushElsewhere(part+1+i%(spreadParts-1), s.put(uid, version))
		}
	}
	awaitMaster(s.t, s.server, key, func(master string) bool { return master != killed })
	to = time.Now()
	s.progress(500)
	s.server.RestartNode(s.t, killed)
	return saved, from, to
}

// pushElsewhere pushes a command to the list of a part, as soon as its master answers.
func (s *spread) pushElsewhere(part int, command []byte) {
	s.t.Helper()
	s.until("a command is pushed", func() (bool, error) {
		return true, s.clients.Write.RPush(s.ctx, s.queue.Parts[part%spreadParts].Keys.Control, command).Err()
	})
}

// moveAll moves the slot of every part while it is used, and saves some of its models several times meanwhile.
func (s *spread) moveAll(versions int, move func(testing.TB, *testkit.Server, string)) (saved []string) {
	s.t.Helper()
	for i, part := range s.parts {
		moved := part.uids[:20]
		saved = append(saved, moved...)
		for version := range versions {
			for _, uid := range moved {
				s.pushElsewhere(i+1, s.put(uid, version+1))
			}
			if version == versions/2 {
				move(s.t, s.server, part.store.Keys.Due)
			}
		}
	}
	s.progress(500)
	return saved
}

// expectVersion wants that the last save of each model counts.
func (s *spread) expectVersion(uids []string, version int) {
	s.t.Helper()
	want := fmt.Sprintf(`{"version":%d}`, version)
	for _, uid := range uids {
		records, err := s.queue.Of(uid).Load(s.ctx, []string{uid})
		s.check("read a model", err)
		payload := records[uid].Payload
		failIf(s.t, payload != want, "%s: want the payload of the last command, %s, got %s", uid, want, payload)
	}
}

// settleAll waits until every model was refreshed again, takes the schedule away, and waits until nothing is left to do.
func (s *spread) settleAll() {
	s.t.Helper()
	now := s.now()
	for _, part := range s.parts {
		part.refreshedAfter(now)
		part.healed = now // what waits is planned anew when the schedule goes, and starts no more
	}
	s.check("store the policy", s.queue.Fleet().PutPolicy(s.ctx, s.unscheduled()))
	for _, part := range s.parts {
		part.drain()
	}
}

// auditAll holds journal, counters, models and the log of the workers against each other.
func (s *spread) auditAll(from, to time.Time) {
	s.t.Helper()
	started, ended, applied := map[string]int{}, map[string]int{}, 0
	for _, part := range s.parts {
		part.examine()
		y := part.count()
		part.checkAttempts(y)
		part.checkCounters(y)
		part.checkModels()
		applied += y.results
		for uid, count := range y.starts {
			started[uid] += count
		}
		for uid, count := range y.ends {
			ended[uid] += count
		}
	}
	unknown := 0
	for uid, at := range s.log.acked {
		popped := s.log.popped[uid]
		switch lost := popped.Before(to) && at.After(from); {
		case started[uid] == 1 && ended[uid] == 1:
		case started[uid] == 0 && lost: // the node that took over does not know of it
			unknown++
		default:
			s.t.Errorf("attempt %s, popped at %s and answered at %s: want one start and one end, got %d and %d", uid, popped, at, started[uid], ended[uid])
		}
	}
	forwarded, err := s.counted(model.CounterForwarded)
	s.check("read the counters", err)
	failIf(s.t, forwarded < spreadModels/2, "the fault did not strike: want most commands forwarded, got %d", forwarded)
	s.t.Logf("attempts started %d, results applied %d, commands forwarded %d, attempts that the failover forgot %d; it took %s",
		len(started), applied, forwarded, unknown, to.Sub(from.Add(time.Second)).Round(10*time.Millisecond))
}

func TestAQueueOfEightPartsOutlivesAKilledMasterAndMovingSlots(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := newSpread(t)
	var daemons []*testkit.Process
	for range 2 {
		for _, name := range []string{"dispatcher", "poller"} {
			daemons = append(daemons, testkit.Refreshd(t, name, "--redis", s.address, "--queue", "bigtables"))
		}
	}
	s.work()
	s.save()
	s.progress(500)
	early, from, to := s.failover(0)
	saved := s.moveAll(4, moveSlot)
	s.settleAll()
	stopAll(t, daemons...)
	s.crew.stop()
	s.expectVersion(early, 3)
	s.expectVersion(saved, 4)
	s.auditAll(from, to)
}
