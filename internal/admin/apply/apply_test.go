package apply

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

type bundle struct {
	t      *testing.T
	queue  *store.Queue
	path   string
	client goredis.UniversalClient
}

func setup(t *testing.T, server *testkit.Server) *bundle {
	t.Helper()
	client := server.Client(t)
	queue := check.Got(store.Open(t.Context(), &redis.Clients{Read: client, Write: client, Block: client}, store.Config{}))(t)
	return &bundle{t, queue, t.TempDir(), client}
}

func (b *bundle) plan(documents string) *Plan {
	b.t.Helper()
	must(b.t, os.WriteFile(filepath.Join(b.path, "fleet.yaml"), []byte(documents), 0o600))
	d := check.Got(definitions.ReadDirectory(b.path))(b.t)
	plan, err := New(b.t.Context(), b.queue, d, Options{Owner: "ann", Prune: true, By: "ann", MaxDelete: "10"})
	stopIf(b.t, err != nil || len(plan.Refused) > 0, "%v %v", err, plan)
	return plan
}

func (b *bundle) carryOut(plan *Plan) *Plan {
	b.t.Helper()
	must(b.t, plan.CarryOut(b.t.Context()))
	return plan
}

func (b *bundle) change(uid string, decide ...func(*store.Record) model.Decision) {
	b.t.Helper()
	part := b.queue.Of(uid)
	for _, decide := range decide {
		records := check.Got(part.Load(b.t.Context(), []string{uid}))(b.t)
		now, _ := part.Now(b.t.Context())
		item := store.Item{Transition: records[uid].Decide(decide(records[uid]), now)}
		codes, err := part.Commit(b.t.Context(), store.Batch{Now: now, MaxQueued: 10, Items: []store.Item{item}})
		stopIf(b.t, err != nil || codes[0] != store.CodeApplied, "%v %v", codes, err)
	}
}

func (b *bundle) record(uid string) *store.Record {
	b.t.Helper()
	records := check.Got(b.queue.Of(uid).Load(b.t.Context(), []string{uid}))(b.t)
	return records[uid]
}

func run(r *store.Record) model.Decision {
	decision, _ := r.Run(true, r.RefreshAt)
	return decision
}

func start(r *store.Record) model.Decision { return r.Start(r.RefreshAt, "a1") }

const two = "- {uid: a, payload: {n: %}, rrule: FREQ=YEARLY}\n- {uid: b, payload: {n: %}, rrule: FREQ=YEARLY}\n- {uid: c, payload: {n: %}, rrule: FREQ=YEARLY}\n"

func documents(n string) string { return strings.ReplaceAll(two, "%", n) }

func TestAModelThatHasChangedSinceItWasPlannedIsRefusedAndTheOthersAreNot(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		b.carryOut(b.plan(documents("1")))
		plan := b.plan(strings.ReplaceAll(documents("2"), "uid: c", "uid: d")) // changes a and b, deletes c, creates d
		b.change("b", run)
		b.change("c", run)
		b.change("d", func(*store.Record) model.Decision {
			return model.Decision{Event: model.EventCreate, Definition: &model.Model{UID: "d", Payload: "{}"}}
		})
		b.carryOut(plan)
		for _, step := range plan.Steps {
			refused := step.Name != "a"
			failIf(t, refused == step.Applied || refused != strings.Contains(step.Error, "expected the model "+step.Name+" as it was planned, found it changed since"),
				"%s %s: found %s, applied %v", step.Action, step.Name, step.Error, step.Applied)
		}
		if a, other, c, d := b.record("a"), b.record("b"), b.record("c"), b.record("d"); a.Payload != `{"n":2}` || other.Payload != `{"n":1}` || !c.Exists || d.Payload != "{}" {
			t.Errorf("found %s, %s, %v, %s", a.Payload, other.Payload, c.Exists, d.Payload)
		}
	})
}

func TestAModelWhoseAttemptAWorkerTakesMeanwhileIsChangedAndStartsAgain(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		b.carryOut(b.plan(documents("1")))
		b.change("a", run, start)
		plan := b.plan(documents("2"))
		must(t, server.Client(t).LPop(t.Context(), b.queue.Parts[0].Keys.Input).Err())
		b.carryOut(plan)
		a := b.record("a")
		failIf(t, a.Payload != `{"n":2}` || !a.Again || a.AttemptUID != "a1", "expected a model that starts again, found %+v", a.State)
	})
}

func TestAPlanThatRefusesSomethingIsNotCarriedOut(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	plan := b.plan(documents("1"))
	plan.Refused = []error{errors.New("x")}
	err := plan.CarryOut(t.Context())
	failIf(t, err == nil || b.record("a").Exists, "expected an error and nothing done, found %v", err)
}

func TestAShareIsANumberOrAPercentageRoundedUp(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "7": 7, "0%": 0, "5%": 1, "50%": 10, "12.5%": 3, "100%": 20} {
		got, err := (Options{MaxDelete: text}).maxDeleted(20)
		failIf(t, err != nil || got != want, "%s of 20: expected %d, found %d, %v", text, want, got, err)
	}
	for _, text := range []string{"", "-1", "101%", "-1%", "x%", "1.5", "%", "NaN%"} {
		failIf(t, (Options{Owner: "ann", MaxDelete: text}).Validate() == nil, "%q: expected an error, found none", text)
	}
}
