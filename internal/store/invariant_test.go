package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model"
)

// check compares what Redis holds with what must hold whatever happened.
func (m *machine) check(*rapid.T) {
	got := m.view()
	if found := roundedNumber.FindString(fmt.Sprint(texted(got))); found != "" {
		m.rapid.Fatalf("found the number %s…, want all digits", found)
	}
	for _, broken := range brokenInvariants(got) {
		m.rapid.Fatal(broken)
	}
	waiting := 0
	for _, name := range []string{"-output", "-control", ":claimed:control", ":claimed:p1", ":claimed:p2"} {
		messages, _ := got[name].(list)
		waiting += len(messages)
	}
	if m.sent != waiting+m.handled {
		m.rapid.Fatalf("%d messages sent, %d waiting and %d handled: each must be exactly one", m.sent, waiting, m.handled)
	}
}

// decided is the hash that follows from a transition, with what it leaves to the script, or to others, as it is.
func (m *machine) decided(t *Transition, is hash) hash {
	if t.removes() || t.after == nil {
		return map[bool]hash{false: is}[t.removes()]
	}
	want := asHash(t.after)
	for _, name := range []string{"ticket", "user_friendly_status", "progress"} {
		if delete(want, name); is[name] != "" {
			want[name] = is[name]
		}
	}
	for name, value := range t.isLabels {
		want["label:"+name] = value
	}
	want["rev"] = cmp.Or(t.newRev, t.rev)
	return want
}

// view reads what state does, but in one round trip.
func (m *machine) view() keys {
	all, ctx := keys{}, context.Background()
	pipe := m.redis.Pipeline()
	var readers []func()
	for name, kind := range m.everyKey() {
		readers = append(readers, reader(pipe, kind, name, all))
	}
	_, _ = pipe.Exec(ctx) // its error is the first Nil
	for _, read := range readers {
		read()
	}
	return all
}

// reader asks for a key and returns what notes the answer, unless the key is absent.
func reader(pipe redis.Pipeliner, kind, name string, all keys) func() {
	ctx, key := context.Background(), benchQueue+name
	switch kind {
	case "hash":
		reply := pipe.HGetAll(ctx, key)
		return func() { addFilled(all, map[string]hash{name: reply.Val()}) }
	case "list":
		reply := pipe.LRange(ctx, key, 0, -1)
		return func() { addFilled(all, map[string]list{name: reply.Val()}) }
	case "zset":
		reply := pipe.ZRangeWithScores(ctx, key, 0, -1)
		return func() { addFilled(all, map[string]scores{name: scoresOf(reply.Val())}) }
	case "set":
		reply := pipe.SMembersMap(ctx, key)
		return func() {
			uids := set{}
			for uid := range reply.Val() {
				uids[uid] = true
			}
			addFilled(all, map[string]set{name: uids})
		}
	case "stream":
		reply := pipe.XRange(ctx, key, "-", "+")
		return func() { addFilled(all, map[string]events{name: withoutIDs(reply.Val())}) }
	default:
		reply := pipe.Get(ctx, key)
		return func() {
			if reply.Err() == nil {
				all[name] = reply.Val()
			}
		}
	}
}

func addFilled[T interface {
	list | scores | events | hash | set
}](all keys, values map[string]T) {
	for name, value := range values {
		if len(value) > 0 {
			all[name] = value
		}
	}
}

func scoresOf(members []redis.Z) scores {
	all := scores{}
	for _, z := range members {
		all[fmt.Sprint(z.Member)] = z.Score
	}
	return all
}

// everyKey lists the keys that a machine can come to hold, with their types, but for the policies.
func (m *machine) everyKey() map[string]string {
	all := map[string]string{
		":due": "zset", ":urgent": "zset", ":running": "zset", ":pollers": "zset", ":stats": "hash", ":journal": "stream", ":outbox": "stream",
		"-input": "list", "-output": "list", "-control": "list", ":rejected": "list", ":wake": "list",
		":claimed:p1": "list", ":claimed:p2": "list", ":claimed:control": "list", ":holder": "string",
		":commands": "zset", ":forwarded": "hash", ":reply:x": "list",
		":failing": "zset", ":disabled": "zset", ":parked": "zset", ":gates": "zset", ":stale_at": "zset", ":late": "zset", ":stale": "zset", ":parked:hold:h1": "zset", ":parked:hold:h2": "zset",
		":label:tenant=t1": "set", ":label:tenant=t2": "set", ":label:kind=feed": "set",
	}
	all[":errors"], all[":past_errors"] = "zset", "zset"
	for _, uid := range modelNames {
		all[":model:"+uid], all[":payload:"+uid], all[":history:"+uid] = "hash", "string", "list"
	}
	return all
}

// brokenInvariants tells which rules about a model and the two sets do not hold.
func brokenInvariants(all keys) (broken list) {
	due, _ := all[":due"].(scores)
	urgent, _ := all[":urgent"].(scores)
	running, _ := all[":running"].(scores)
	parked, _ := all[":parked"].(scores)
	wantDue, wantUrgent, wantRunning, wantParked := scores{}, scores{}, scores{}, scores{}
	wantErrors := scores{}
	for _, uid := range modelNames {
		fields, _ := all[":model:"+uid].(hash)
		m := NewRecord(uid, fields).Model
		if m.FingerprintID != "" {
			wantErrors[m.FingerprintID]++
		}
		if (m.FingerprintID == "") != m.FailingSince.IsZero() {
			broken = append(broken, fmt.Sprintf("%s is failing since %v by %q", uid, m.FailingSince, m.FingerprintID))
		}
		if m.AttemptUID != "" {
			wantRunning[uid] = float64(m.DeadlineAt.UnixMilli())
		} else if !m.Disabled && !m.RefreshAt.IsZero() && m.ParkedBy != "" {
			wantParked[uid] = float64(m.RefreshAt.UnixMilli())
		} else if !m.Disabled && !m.RefreshAt.IsZero() && m.Trigger == model.TriggerRun {
			wantUrgent[uid] = float64(m.RefreshAt.AddDate(0, 0, -36500).UnixMilli())
		} else if !m.Disabled && !m.RefreshAt.IsZero() && m.Trigger == model.TriggerHand {
			wantUrgent[uid] = float64(m.RefreshAt.UnixMilli())
		} else if !m.Disabled && !m.RefreshAt.IsZero() {
			wantDue[uid] = float64(m.RefreshAt.UnixMilli())
		}
		if (m.AttemptUID == "") != m.DeadlineAt.IsZero() || m.Disabled && (m.AttemptUID != "" || !m.RefreshAt.IsZero()) {
			broken = append(broken, fmt.Sprintf("%s is %v", uid, fields))
		}
	}
	if failing, _ := all[":errors"].(scores); !maps.Equal(wantErrors, failing) {
		broken = append(broken, fmt.Sprintf("errors %v, want %v", failing, wantErrors))
	}
	if !maps.Equal(wantDue, due) || !maps.Equal(wantUrgent, urgent) || !maps.Equal(wantRunning, running) || !maps.Equal(wantParked, parked) {
		broken = append(broken, fmt.Sprintf("due %v, urgent %v, running %v and parked %v, want %v, %v, %v and %v", due, urgent, running, parked, wantDue, wantUrgent, wantRunning, wantParked))
	}
	return broken
}
