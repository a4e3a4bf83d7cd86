package refreshdtest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// Command pushes one command as an application does, a JSON object, and lets it be applied. See docs/wire.md for what there is.
func (q *Queue) Command(text string) client.Reply {
	q.t.Helper()
	fields := map[string]any{}
	q.must(json.Unmarshal([]byte(text), &fields), "read the command")
	return q.command(fields)
}

func (q *Queue) command(fields map[string]any) (reply client.Reply) {
	q.t.Helper()
	ctx, list := q.t.Context(), q.store.Keys.Reply("refreshdtest")
	fields["reply_to"] = list
	text, err := json.Marshal(fields)
	q.must(err, "write the command")
	q.must(q.Redis.RPush(ctx, q.store.Keys.Control, text).Err(), "push the command")
	q.poll()
	answer, err := q.Redis.LPop(ctx, list).Result()
	if errors.Is(err, redis.Nil) {
		q.t.Fatalf("command: expected a reply, found none")
	}
	q.must(err, "read the reply")
	q.must(json.Unmarshal([]byte(answer), &reply), "read the reply")
	q.settle()
	return reply
}

func (q *Queue) want(kind model.CommandType, fields map[string]any) {
	q.t.Helper()
	fields["type"] = kind
	if reply := q.command(fields); reply.Outcome == client.Refused {
		q.t.Fatalf("%s %v: %s", kind, fields["uid"], reply.Reason)
	}
}

// Put saves models: a text in YAML or JSON as in a file of `refreshd model put`, one or many. One that is refused ends the test.
func (q *Queue) Put(text string) {
	q.t.Helper()
	err := definitions.ReadModels("models", strings.NewReader(text), definitions.FormatAuto, func(m definitions.Model) error {
		q.t.Helper()
		if m.Err != nil {
			return m.At(m.Err)
		}
		q.want(model.CommandPut, m.Value.(map[string]any))
		return nil
	})
	q.must(err, "put")
}

// PutPolicy stores policies: a text in YAML, JSON or English as in a file of `refreshd policy put`.
func (q *Queue) PutPolicy(text string) {
	q.t.Helper()
	docs, err := definitions.ReadPolicies("policies", strings.NewReader(text))
	q.must(err, "put a policy")
	for _, doc := range docs {
		var p policy.Policy
		draft, err := policy.Read(doc.Value)
		if err == nil {
			p, err = draft.Complete(policy.Default())
		}
		if err == nil {
			err = q.store.Fleet().PutPolicy(q.t.Context(), p)
		}
		if err != nil {
			q.t.Fatal("put a policy: ", doc.At(err))
		}
	}
	q.poll() // models whose rule has changed are planned anew
	q.settle()
}

// Run starts a model by hand, at once. A refusal ends the test; Command returns it instead.
func (q *Queue) Run(uid string) { q.t.Helper(); q.want(model.CommandRun, map[string]any{"uid": uid}) }

// Enable ends the disabled state of a model.
func (q *Queue) Enable(uid string) {
	q.t.Helper()
	q.want(model.CommandEnable, map[string]any{"uid": uid})
}

// Disable stops a model until it is enabled, with a reason for its owner.
func (q *Queue) Disable(uid, reason string) {
	q.t.Helper()
	q.want(model.CommandDisable, map[string]any{"uid": uid, "reason": reason})
}

// Remove forgets a model.
func (q *Queue) Remove(uid string) {
	q.t.Helper()
	q.want(model.CommandRemove, map[string]any{"uid": uid})
}

// Hold keeps the models of a selector, such as tenant=t1, from starting, for a time; 0: until Release of this name.
func (q *Queue) Hold(name, selector string, length time.Duration) {
	q.t.Helper()
	picks, err := model.ParseSelector(selector)
	q.must(err, "hold")
	hold := model.Hold{ID: name, Selector: picks, Since: q.Now(), Reason: name}
	if length > 0 {
		hold.Until = hold.Since.Add(length)
	}
	q.must(flow.Of(q.store).PutHold(q.t.Context(), &hold), "hold")
	q.settle()
}

// Release ends a hold. One that is not there ends the test.
func (q *Queue) Release(name string) {
	q.t.Helper()
	found, err := flow.Of(q.store).ReleaseHold(q.t.Context(), name, 0, q.Now())
	q.must(err, "release")
	if !found {
		q.t.Fatalf("release: expected a hold %s, found none", name)
	}
	q.settle()
}
