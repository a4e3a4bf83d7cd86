package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// storm is an application that saves its models again and again, on one connection: each save is a version of the
// payload.
type storm struct {
	uids     []string
	versions int
	last     map[string]int // what was pushed last: the version, or 0 for a remove
	removed  map[string]bool
	random   *rand.Rand

	gusts, commands int
	wrong           []string // models that were not where the last command of a gust left them
}

func newStorm(models int, seed uint64) *storm {
	s := &storm{last: map[string]int{}, removed: map[string]bool{}, random: rand.New(rand.NewPCG(seed, 1))}
	for i := range models {
		s.uids = append(s.uids, fmt.Sprint("s", i))
	}
	return s
}

func (s *storm) put(uid, policy string) any {
	s.versions++
	s.last[uid] = s.versions
	payload := fmt.Sprintf(`{"input_url":"http://feed","version":%d}`, s.versions)
	return fmt.Sprintf(`{"type":"put","uid":%q,"policy":%q,"payload":%s}`, uid, policy, payload)
}

func (s *storm) remove(uid string) any {
	s.last[uid], s.removed[uid] = 0, true
	return fmt.Sprintf(`{"type":"remove","uid":%q}`, uid)
}

// gust returns three commands for each model in their order, the models interleaved. The first is a save; of a
// quarter of the models the second is a remove, of another quarter the third.
func (s *storm) gust(policy string) (commands []any) {
	removes := make([]int, len(s.uids))
	for i := range removes {
		removes[i] = 1 + s.random.IntN(4)
	}
	for turn := range 3 {
		for i, uid := range s.uids {
			if turn == removes[i] {
				commands = append(commands, s.remove(uid))
			} else {
				commands = append(commands, s.put(uid, policy))
			}
		}
	}
	s.commands += len(commands)
	return commands
}

// rage pushes one gust after the other until ctx ends, and looks after each where it left the models. What may have
// arrived in part is followed by a whole gust of newer versions, so that the last command that arrived is always the last
// one that is known.
func (c *chaos) rage(ctx context.Context) error {
	client := c.server.Client(c.t)
	for ctx.Err() == nil {
		err := c.await(func() (bool, error) {
			_, err := client.Pipelined(c.ctx, func(p goredis.Pipeliner) error {
				for _, command := range c.storm.gust(c.policy.Name) {
					p.RPush(c.ctx, c.store.Keys.Control, command)
				}
				return nil
			})
			return true, err
		})
		if err == nil {
			err = c.await(c.allApplied)
		}
		if err == nil {
			err = c.await(c.compare)
		}
		if err != nil {
			return err
		}
		c.storm.gusts++
	}
	return nil
}

// allApplied reports whether no command waits and no poller holds one.
func (c *chaos) allApplied() (bool, error) {
	waiting, err := c.clients.Read.LLen(c.ctx, c.store.Keys.Control).Result()
	if err != nil || waiting > 0 {
		return false, err
	}
	lists, err := c.clients.Read.Keys(c.ctx, c.store.Keys.Claimed("*")).Result()
	for _, list := range lists {
		held, err := c.clients.Read.LRange(c.ctx, list, 0, -1).Result()
		if err != nil || slices.ContainsFunc(held, isCommand) {
			return false, err
		}
	}
	return true, err
}

// isCommand reports whether a claimed message comes from the control list.
func isCommand(claimed string) bool { return !strings.HasPrefix(strings.ToLower(claimed), "o") }

// compare notes which models are not where their last command left them.
func (c *chaos) compare() (bool, error) {
	keys := make([]string, len(c.storm.uids))
	for i, uid := range c.storm.uids {
		keys[i] = c.store.Keys.Payload(uid)
	}
	payloads, err := c.clients.Read.MGet(c.ctx, keys...).Result()
	if err != nil {
		return false, err
	}
	for i, uid := range c.storm.uids {
		var payload struct{ Version int }
		if text, stored := payloads[i].(string); stored {
			err = errors.Join(err, json.Unmarshal([]byte(text), &payload))
		}
		if want := c.storm.last[uid]; payload.Version != want {
			found := fmt.Sprintf("gust %d, %s: want version %d (0: removed), got %d", c.storm.gusts, uid, want, payload.Version)
			c.storm.wrong = append(c.storm.wrong, found)
		}
	}
	return true, err
}

// living are the models of the storm whose last command is a save.
func (s *storm) living() (uids []string) {
	for _, uid := range s.uids {
		if s.last[uid] > 0 {
			uids = append(uids, uid)
		}
	}
	return uids
}

// litter are useless messages, by the counter that counts them.
type litter struct {
	list, counter, text string
}

func (c *chaos) litters() []litter {
	output, control := c.store.Keys.Output, c.store.Keys.Control
	huge := strings.Repeat("x", 2<<20)
	return []litter{
		{output, "malformed", `{"type":"success","big_ta`},
		{output, "malformed", "\xff\xfe"},
		{output, "unknown_type", `{"type":"dance","big_table_uid":"m0","refresh_attempt_uid":"x"}`},
		{output, "no_uid", fixture.Result("success", "m0", "")},
		{output, "no_uid", fixture.Result("success", "m0", "x", `"request_attempt_uid":"y"`)},
		{output, "stale", fixture.Result("success", "m0", "x")},
		{output, "unknown_model", fixture.Result("success", "nobody", "x")},
		{output, "oversized", huge},
		{control, "malformed", `{"type":"put","uid":`},
		{control, "malformed", `{"type":"put","uid":"m0","rrule":"FREQ=NEVER"}`},
		{control, "unknown_type", `{"type":"dance","uid":"m0"}`},
		{control, "no_uid", `{"type":"run"}`},
		{control, "unknown_model", `{"type":"run","uid":"nobody"}`},
		{control, "oversized", huge},
	}
}

// strew pushes litter in a random order and notes what Redis has acknowledged of it.
func (c *chaos) strew(order []int) {
	c.t.Helper()
	all := c.litters()
	for _, i := range order {
		l := all[i%len(all)]
		err := c.admin.RPush(c.ctx, l.list, l.text).Err()
		switch {
		case err == nil:
			c.strewn[l.counter]++
		case !redis.Answered(err):
			c.doubtful[l.counter]++
		}
	}
}
