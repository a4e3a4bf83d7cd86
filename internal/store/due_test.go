package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

func (b *bench) readDue(limit int) Due {
	b.t.Helper()
	due, err := b.ReadDue(context.Background(), DueRequest{Limit: limit})
	must(b.t, err)
	return due
}

func TestHalfOfASpreadPageIsFromAllThatIsDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		all := scores{"later": six + 1}
		for i := range 2000 {
			all[fmt.Sprintf("h%02d/m%02d", i/100, i%100)] = six - 2000 + float64(i)
		}
		b.seed(keys{":due": all})
		for _, limit := range []int{1, 2, 99, 500, 1000} {
			due, err := b.ReadDue(t.Context(), DueRequest{Limit: limit, Spread: true})
			must(t, err)
			hosts, seen := map[string]int{}, map[string]bool{}
			for _, uid := range due.Due {
				hosts[uid[:3]]++
				seen[uid] = true
			}
			failIf(t, due.Due[0] != "h00/m00" || len(due.Due) != limit || len(seen) != len(due.Due) || seen["later"],
				"limit %d: want the oldest first, each once, got %d: %.200q", limit, len(due.Due), due.Due)
			failIf(t, limit >= 99 && len(hosts) != 20, "limit %d: want each host to have its turn, got %v", limit, hosts)
			early := map[string]bool{}
			for _, uid := range due.Due[:min(limit, 98)] {
				early[uid[:3]] = true
			}
			failIf(t, limit >= 500 && len(early) < 19, "limit %d: want each host early, got %v", limit, early)
		}
		plain := b.readDue(500)
		failIf(t, plain.Due[499] != "h04/m99", "want the oldest where nothing is spread, got %q", plain.Due[499])
	})
}

func TestReadDueTellsWhatIsPastAndWhatIsNext(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	tests := []struct {
		name string
		seed keys
		want Due
	}{
		{"nothing", nil, Due{}},
		{
			"oldest first, and exactly now is past", keys{":due": scores{"new": six, "old": six - 2, "mid": six - 1, "next": six + 1}},
			Due{Due: list{"old", "mid", "new"}, Next: at(six + 1)},
		},
		{
			"deadlines likewise", keys{":running": scores{"new": six, "old": six - 2, "next": six + 5}, "-input": list{"x", "y"}},
			Due{Queued: 2, Expired: list{"old", "new"}, Next: at(six + 5)},
		},
		{"the earlier of both is next", keys{":due": scores{"a": six + 9}, ":running": scores{"b": six + 8}}, Due{Next: at(six + 8)}},
		{"and the other way round", keys{":due": scores{"a": six + 8}, ":running": scores{"b": six + 9}}, Due{Next: at(six + 8)}},
		{
			"at most three of each kind", keys{":due": scores{"a": 1, "b": 2, "c": 3, "d": 4}, ":running": scores{"e": 1, "f": 2, "g": 3, "h": 4}},
			Due{Due: list{"a", "b", "c"}, Expired: list{"e", "f", "g"}},
		},
		{
			"what is urgent likewise, apart", keys{":urgent": scores{"b": six, "a": six - 1, "next": six + 2}, ":due": scores{"c": six - 5}},
			Due{Urgent: list{"a", "b"}, Due: list{"c"}, Next: at(six + 2)},
		},
		{
			"whose freshness changes likewise, with the next change",
			keys{":stale_at": scores{"d": six + 3, "c": six, "b": six - 1, "a": six - 2, "e": six - 3}, ":due": scores{"x": six + 9}},
			Due{Ages: list{"e", "a", "b"}, Next: at(six + 3)},
		},
		{
			"scores that a person wrote stop nobody",
			keys{":due": scores{"half": six + 0.5, "old": six - 0.5}, ":running": scores{"never": math.Inf(1), "always": math.Inf(-1)}},
			Due{Due: list{"old"}, Expired: list{"always"}, Next: at(six)},
		},
		{"for ever is no next time", keys{":due": scores{"never": math.Inf(1)}}, Due{}},
	}
	onBoth(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				b := b.fresh(t)
				b.seed(test.seed)
				want := test.want
				want.Now, want.Judged, want.Sharers, want.Blockers = b.now, b.now, 1, new(blockerCache).read(b.Store, [3][]string{})
				for _, uids := range []*list{&want.Urgent, &want.Due, &want.Expired, &want.Ages} {
					*uids = append(list{}, *uids...) // none is an empty list
				}
				b.unchanged(func() { expectEqual(t, "due", want, b.readDue(3)) })
			})
		}
	})
}

// Few members of a set are read at first.
func TestReadDueReadsAllThatIsPastHoweverManyThereAre(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for n := 1; n < 6*6*3; n++ {
			old, young, later := n%6, n/6%6, n/36 // young ones are left to the dispatcher before for a while
			all, want := scores{}, list(nil)
			for i, count := range []int{old, young, later} {
				for j := range count {
					uid := fmt.Sprint(i, j)
					all[uid] = float64(six + []int64{-30, -5, 7}[i])
					if i == 0 {
						want = append(want, uid)
					}
				}
			}
			b := b.fresh(t)
			b.seed(keys{":due": all, ":dispatchers": scores{"d0": six - 1}})
			due := check.Got(b.ReadDue(t.Context(), DueRequest{Limit: 100, Owner: "d1", Lease: time.Second, Pause: 25 * time.Millisecond}))(t)
			next := time.UnixMilli(six + 25 - 5)
			if young == 0 {
				next = time.UnixMilli(six + 25 + 7)
			}
			failIf(t, !slices.Equal(due.Due, want) || young+later > 0 && !due.Next.Equal(next) || young+later == 0 && !due.Next.IsZero(),
				"%d old, %d young, %d later: expected %v and %s, found %v and %s", old, young, later, want, next, due.Due, due.Next)
		}
	})
}

// asks is what a dispatcher sees at a time after six.
func (b *bench) asks(owner string, after time.Duration) (due, expired []string, next time.Duration) {
	b.t.Helper()
	b.now = time.UnixMilli(six).UTC().Add(after)
	seen, err := b.ReadDue(b.t.Context(), DueRequest{Limit: 2, Owner: owner, Lease: time.Second, Pause: 25 * time.Millisecond})
	must(b.t, err)
	if !seen.Next.IsZero() {
		next = seen.Next.Sub(b.now)
	}
	return seen.Due, seen.Expired, next
}

func (b *bench) expectShare(owner string, after time.Duration, want []string, wantNext time.Duration) {
	b.t.Helper()
	due, expired, next := b.asks(owner, after)
	failIf(b.t, !slices.Equal(due, want) || !slices.Equal(expired, want) || next != wantNext,
		"%s at %s: want %v, next %s; got %v and %v, next %s", owner, after, want, wantNext, due, expired, next)
}

// both seeds the due and the running set alike.
func both(all scores) keys { return keys{":due": all, ":running": all} }

func TestDispatchersReadAPageEachWhenThereIsMoreThanOne(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(both(scores{"a": six - 5, "b": six - 4, "c": six - 3, "d": six - 2, "e": six - 1}))
		for _, owner := range []string{"d3", "d4", "d2", "d1"} {
			b.asks(owner, 0)
		}
		b.expectShare("d1", 0, []string{"a", "b"}, 0)
		b.expectShare("d2", 0, []string{"c", "d"}, 0)
		b.expectShare("d3", 0, []string{"e"}, 0)
		b.expectShare("d4", 0, nil, 75*time.Millisecond) // its page may come soon
	})
}

func TestDispatchersShareTheFreePlacesWhenMoreIsUrgentOrDueThanAPage(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		none, page, more := scores{"d": six + 9}, scores{"a": six - 2, "b": six - 1}, scores{"a": six - 2, "b": six - 1, "c": six}
		for _, test := range []struct {
			urgent, due scores
			sharers     int
		}{{page, page, 1}, {more, none, 2}, {more, page, 2}, {page, more, 2}, {none, more, 2}} {
			b := b.fresh(t)
			b.seed(keys{":urgent": test.urgent, ":due": test.due})
			b.asks("d1", 0)
			b.asks("d2", 0)
			seen, err := b.ReadDue(t.Context(), DueRequest{Limit: 2, Owner: "d1", Lease: time.Second, Pause: 25 * time.Millisecond})
			must(t, err)
			failIf(t, seen.Sharers != test.sharers, "urgent %v, due %v: want %d who share, got %d", test.urgent, test.due, test.sharers, seen.Sharers)
		}
	})
}

func TestADispatcherLeavesASinglePageToThoseBeforeItForAWhile(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(both(scores{"a": six, "b": six + 10}))
		for _, owner := range []string{"d1", "d2", "d3"} {
			b.asks(owner, -time.Millisecond)
		}
		b.expectShare("d1", 0, []string{"a"}, 10*time.Millisecond)
		b.expectShare("d2", 0, nil, 25*time.Millisecond)
		b.expectShare("d2", 25*time.Millisecond, []string{"a"}, 10*time.Millisecond)
		b.expectShare("d3", 49*time.Millisecond, nil, time.Millisecond)
		b.expectShare("d3", 60*time.Millisecond, []string{"a", "b"}, 0)
	})
}

func TestADeadOrRetiredDispatcherHasNoShare(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(both(scores{"a": six}), keys{":dispatchers": scores{"d0": six + 60_000}})) // the clock has been set back since
		b.asks("d1", 0)
		b.expectShare("d2", 0, nil, 25*time.Millisecond)
		b.expectShare("d2", 999*time.Millisecond, []string{"a"}, 0)
		b.seed(both(scores{"b": six + 1000}))
		b.expectShare("d2", 1000*time.Millisecond, []string{"a", "b"}, 0) // d1 is dead

		b.asks("d1", 1000*time.Millisecond)
		b.seed(both(scores{"a": six + 2000, "b": six + 2000}))
		b.expectShare("d2", 2000*time.Millisecond-time.Millisecond, nil, 26*time.Millisecond)
		must(t, b.Retire(t.Context(), "d1"))
		b.expectShare("d2", 2000*time.Millisecond, []string{"a", "b"}, 0)
	})
}

func TestADispatcherNotesItsWindowForALeaseUntilItRetires(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		asked := DueRequest{Limit: 2, Lease: time.Second, Window: 70}
		note := func(owner string, want any) {
			t.Helper()
			asked.Owner = owner
			check.Got(b.ReadDue(t.Context(), asked))(t)
			expectEqual(t, "heard", want, b.state()[":heard"])
		}
		note("", nil)
		note("d1", hash{"beat": "1795240800000", "window": "70 1795240801000"})
		asked.Window, b.now = 140, b.now.Add(time.Millisecond)
		note("d2", hash{"beat": "1795240800001", "window": "140 1795240801001"})
		must(t, b.Retire(t.Context(), "d1"))
		expectEqual(t, "heard", any(hash{"beat": "1795240800001"}), b.state()[":heard"])
		b.redis.Set(t.Context(), b.Keys.Heard, "text", 0)
		must(t, b.Retire(t.Context(), "d2"))
	})
}

func TestADispatcherWithoutANameSharesWithNobodyAndIsNotNoted(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(both(scores{"a": six - 2, "b": six - 1, "c": six}))
		b.asks("d0", 0)
		b.expectShare("", 0, []string{"a", "b"}, 0)
		expectEqual(t, "dispatchers", any(scores{"d0": six}), b.state()[":dispatchers"])
	})
}

// Of 18 MiB in the input list alone, unless the long tests run: all lists are waited for in the same way.
func TestAWaiterIsToldOfAnEntryOf64MiBAndReceivesHardlyAnyOfIt(t *testing.T) {
	t.Parallel()
	const bound = 16 << 20 // the buffers of two sockets of the kernel hold some megabytes
	b, huge := newBench(t, testkit.Redis(t)), strings.Repeat("x", long.Or(18<<20, 64<<20))
	idle, err := New(connect(t, b.server.Addr, redis.ConnectOptions{}), Config{Queue: benchQueue})
	must(t, err)
	waits := map[string]func(context.Context) (bool, error){b.Keys.Input: idle.Pool().WaitInput}
	if long.Enabled() {
		waits[b.Keys.Output], waits[b.Keys.Control], waits[b.Keys.Wake] = idle.WaitOutput, idle.WaitControl, idle.WaitWake
	}
	info := func(section, name string) (n int) {
		_, found, _ := strings.Cut(b.redis.Info(t.Context(), section).Val(), name+":")
		_, err := fmt.Sscan(found, &n)
		must(t, err)
		return n
	}
	for key, wait := range waits {
		told := make(chan error, 1)
		go func() {
			for { // again whenever nothing has come for a second, as loops do also when a busy Redis has not answered in time
				if found, err := wait(t.Context()); found || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					told <- err
					return
				}
			}
		}()
		check.Eventually(t, "it waits", func() bool { return info("clients", "blocked_clients") == 1 })
		before := info("stats", "total_net_output_bytes")
		must(t, b.redis.RPush(t.Context(), key, huge).Err())
		must(t, check.Await(t, told, "a word of "+key))
		sent := info("stats", "total_net_output_bytes") - before
		failIf(t, sent > bound, "%s: the waiter was sent %d bytes, want %d at most", key, sent, bound)
		left := b.redis.LLen(t.Context(), key).Val()
		failIf(t, left != 1 && key != b.Keys.Wake, "%s: %d entries are left, want the one", key, left)
		b.server.Flush(t)
	}
}

func TestAWaitingCallReturnsAtOnceAndTakesNothingButAWakeCall(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		lists := keys{"-output": list{"a", "b"}, "-control": list{"c", "d"}, "-input": list{"e", "f"}}
		b.seed(and(lists, keys{":wake": list{"1"}}))
		for name, wait := range map[string]func(context.Context) (bool, error){
			"output": b.WaitOutput, "control": b.WaitControl, "input": b.Pool().WaitInput, "wake": b.WaitWake,
		} {
			found, err := wait(t.Context())
			failIf(t, !found || err != nil, "%s: %v, %v; want true", name, found, err)
		}
		b.expect(lists)
	})
}

func TestWaitingForNothingEndsByItself(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		var waiting sync.WaitGroup
		for _, wait := range []func(context.Context) (bool, error){b.WaitOutput, b.WaitWake} {
			waiting.Go(func() {
				found, err := wait(context.Background())
				failIf(t, found || err != nil, "waiting for nothing = %v, %v; want false", found, err)
			})
		}
		waiting.Wait()
	})
}

// Only news is noted: not a head that was passed, nor an empty list that was noted already.
func TestAFrontIsNotedWhenItIsNews(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"x"}, ":stats": hash{"start": "9"}})
		note := func(ticket int, after time.Duration, want list) {
			t.Helper()
			b.now = b.now.Add(after)
			must(t, b.SampleHead(t.Context(), ticket, b.now, time.Second))
			got, _ := b.state()[":front"].(list)
			expectEqual(t, "front", want, got)
		}
		note(0, 0, nil)
		note(5, 0, list{"5 1795240800000 1795240800000"})
		note(5, time.Second, list{"5 1795240800000 1795240801000"})
		note(3, time.Second, list{"5 1795240800000 1795240801000"}) // handed back
		note(7, 0, list{"5 1795240800000 1795240801000", "7 1795240802000 1795240802000"})
		note(0, time.Second, list{"5 1795240800000 1795240801000", "7 1795240802000 1795240802000"}) // something waits
		b.redis.Del(t.Context(), b.Keys.Input)
		note(0, 0, list{"5 1795240800000 1795240801000", "7 1795240802000 1795240802000", "9 1795240803000"})
		note(0, time.Second, list{"5 1795240800000 1795240801000", "7 1795240802000 1795240802000", "9 1795240803000"})
		b.redis.HSet(t.Context(), b.Keys.Stats, "start", 2) // somebody has reset the counters
		note(1, 0, list{"1 1795240804000 1795240804000"})
	})
}

// Old fronts are thinned out to a tick's distance, so that they last for hours: nobody seems to have been taken sooner than was noted, nor more
// than a tick later.
func TestOldFrontsAreThinnedOutWithoutATickOfEvidenceLost(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for name, test := range map[string]struct {
			every time.Duration // between two fronts
			empty int           // the list was found empty after so many
			most  int           // fronts that may be kept
			least time.Duration // that they reach back
		}{
			"four a tick":        {250 * time.Millisecond, 7000, 4200, headSamplesCap * 250 * time.Millisecond},
			"thinned out before": {800 * time.Millisecond, 7000, 8750, 100 * time.Minute},
		} {
			b.redis.Del(t.Context(), b.Keys.Front)
			b.redis.HSet(t.Context(), b.Keys.Stats, "start", 3*headSamplesCap)
			begin := b.now.Add(-(headSamplesCap + 1) * test.every).Truncate(time.Millisecond)
			seeded := make([]any, headSamplesCap)
			for i := range seeded {
				seen := begin.Add(time.Duration(i) * test.every).UnixMilli()
				seeded[i] = fmt.Sprintf("%d %d %d", 3*i+1, seen, seen+50)
				if i == test.empty {
					seeded[i] = fmt.Sprintf("%d %d", 3*i+1, seen)
				}
			}
			b.redis.RPush(t.Context(), b.Keys.Front, seeded...)
			before, errBefore := b.HeadSamples(t.Context())
			err := b.SampleHead(t.Context(), 3*headSamplesCap, b.now, time.Second)
			after, errAfter := b.HeadSamples(t.Context())
			stopIf(t, err != nil || errBefore != nil || errAfter != nil, "%v, %v, %v", err, errBefore, errAfter)
			back := after.At.Sub(after.Noted[0].FirstSeen)
			failIf(t, len(after.Noted) > test.most || back < test.least,
				"%s: want at most %d fronts of %s, got %d of %s", name, test.most, test.least, len(after.Noted), back)
			for ticket := after.Noted[0].Ticket; ticket < 3*headSamplesCap-3; ticket += long.Or(7, 1) {
				place := (ticket - 1) / 3
				for _, started := range []time.Duration{-time.Minute, 0, 49 * time.Millisecond, 51 * time.Millisecond} {
					s := &model.State{Ticket: ticket, StartedAt: begin.Add(time.Duration(place)*test.every + started)}
					if !s.StartedAt.After(after.Noted[0].FirstSeen) {
						continue
					}
					if late := after.TakenAt(s).Sub(before.TakenAt(s)); late < 0 || late > time.Second {
						t.Fatalf("%s: ticket %d, started %s after: taken %s later than it was noted", name, ticket, started, late)
					}
				}
			}
		}
	})
}

func connect(t *testing.T, address string, options redis.ConnectOptions) *redis.Clients {
	t.Helper()
	clients, err := redis.Connect(address, options)
	must(t, err)
	t.Cleanup(func() { _ = clients.Close() })
	return clients
}
