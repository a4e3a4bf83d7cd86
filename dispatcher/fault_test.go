package dispatcher_test

import (
	"context"
	"testing"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestOneBadModelDoesNotStopTheOthers(t *testing.T) {
	cases := map[string]func(b *bundle){
		"a uid without a model": func(b *bundle) {
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Due, zscore("bad", fixture.Start))
		},
		"a key of another type": func(b *bundle) {
			b.spoil("bad")
			b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		},
		"a key of another type that runs": func(b *bundle) {
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Running, zscore("bad", fixture.Start))
			b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		},
		"a key of another type that waits and runs": func(b *bundle) {
			b.spoil("bad")
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Running, zscore("bad", fixture.Start))
			b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		},
		"a score without a refresh": func(b *bundle) {
			b.put("bad")
			b.Redis.HDel(context.Background(), b.Store.Keys.Model("bad"), "refresh_at")
		},
		"a disabled model that waits": func(b *bundle) {
			b.put("bad")
			b.Redis.HSet(context.Background(), b.Store.Keys.Model("bad"), "refresh_disabled_until_update", "1")
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				spoil(b)
				b.put("good")
				d := b.dispatcher(b.Store, dispatcher.Config{})
				b.round(d)
				if entry, ok := b.Take(); !ok || entry.UID != "good" {
					t.Errorf("want the good model started, got %v", entry)
				}
				if round := b.round(d); round.Sleep == 0 {
					t.Errorf("want a dispatcher at rest after one round, got %+v", round)
				}
				due, running := b.Scores(b.Store.Keys.Due), b.Scores(b.Store.Keys.Running)
				if delete(running, "good"); len(due)+len(running) != 0 {
					t.Errorf("want the bad one out of both sets, got due %v and running %v", due, running)
				}
			})
		})
	}
}

func (b *bundle) spoil(uid string) {
	b.Redis.ZAdd(context.Background(), b.Store.Keys.Due, zscore(uid, fixture.Start))
}

func TestAModelWithAnUnreadableTimeIsStartedInsteadOfLost(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "refresh_at", "soon")
		if round := b.round(b.dispatcher(b.Store, dispatcher.Config{})); round.Started != 1 {
			t.Errorf("want it started, got %+v", round)
		}
	})
}

// A fault of another field says nothing about the time, and a place in the due set that is wrong is no reason to start.
func TestAFaultyModelInAWrongPlaceOfTheDueSetIsNotStartedBeforeItsTime(t *testing.T) {
	for name, spoil := range map[string]func(b *bundle){
		"it is due later": func(b *bundle) {
			b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "refresh_at", "2026-11-21T08:00:00.000Z")
		},
		"it has finished": func(b *bundle) {
			b.Redis.HDel(context.Background(), b.Store.Keys.Model("tbl_1"), "refresh_at")
		},
	} {
		for fault, add := range map[string]func(b *bundle){
			"no policy":     func(b *bundle) { b.Redis.Del(context.Background(), b.Store.Keys.Policies) },
			"another field": func(b *bundle) { b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "attempt_no", "many") },
			"another time": func(b *bundle) {
				b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "failing_since", "soon")
			},
			"a payload of another type": func(b *bundle) {
				b.Redis.Del(context.Background(), b.Store.Keys.Payload("tbl_1"))
				b.Redis.LPush(context.Background(), b.Store.Keys.Payload("tbl_1"), "x")
			},
		} {
			t.Run(name+", "+fault, func(t *testing.T) {
				both(t, func(t *testing.T, b *bundle) {
					b.put("tbl_1")
					spoil(b)
					add(b)
					round := b.round(b.dispatcher(b.Store, dispatcher.Config{}))
					if round.Started != 0 || b.Attempt("tbl_1") != "" || b.Scores(b.Store.Keys.Due)["tbl_1"] == fixture.Start.UnixMilli() {
						t.Errorf("want it mended and not started, got %+v, %v, due %v", round, b.Model("tbl_1"), b.Scores(b.Store.Keys.Due))
					}
				})
			})
		}
	}
}

func TestAModelWithAMissingPolicyRunsUnderTheDefaultPolicy(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		b.Redis.Del(context.Background(), b.Store.Keys.Policies)
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		if got := b.Model("tbl_1")["deadline_at"]; got != "2026-11-21T07:10:00.000Z" {
			t.Errorf("want the default timeout of ten minutes, got %q", got)
		}
	})
}
