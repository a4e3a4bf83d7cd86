package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// shown is what the pages of the application show, in each language.
const shown = `["saved",30,"refused","timezone"]
["saved again",30]
["tenant t0","tbl_00","tbl_02","tbl_04","tbl_06","tbl_08","tbl_10","tbl_12","tbl_14","tbl_16","tbl_18","tbl_20","tbl_22","tbl_24","tbl_26","tbl_28"]
["next page","tbl_07","tbl_09","tbl_11"]
["no such list"]
["nobody",null]
["new","tbl_07","scheduled","planned",6,null,null,null,"t1"]
["run","applied"]
["refreshed","scheduled","half of it",50,null,{"rows":7}]
["working","processing","half of it","tbl_20"]
["disable","applied"]
["disabled","disabled",null,"has not paid","tbl_20"]
["hold","applied","applied"]
["held","hold:move","tbl_09"]
["release","applied","scheduled"]
["failing","scheduled","failure","no more space",["tbl_13"],[]]
["doubted","parked","suspect:guard","rows 0: expected at least 1"]
["accept","applied","scheduled"]
["reject","unchanged"]
`

// application is a server with daemons and a worker for one queue, and the address for an application.
type application struct{ address, queue string }

// serveApplication starts what the pages need, each at its address. The worker works on the model with 20 rows until it is stopped, and fails with 13.
func serveApplication(t *testing.T, queue string, address func(acl.Role) string) application {
	t.Helper()
	handler := func(ctx context.Context, attempt *worker.Attempt) error {
		var payload struct{ Rows int }
		must(t, json.Unmarshal(attempt.Payload, &payload))
		attempt.Status("half of it", 50)
		attempt.Metric("rows", float64(payload.Rows))
		switch payload.Rows {
		case 13:
			return errors.New("no more space")
		case 20:
			<-ctx.Done()
		}
		return nil
	}
	parts := func(role acl.Role) []*store.Store {
		return fixture.Open(t, address(role), store.Config{Queue: queue}).Parts
	}
	w := check.Got(worker.Open(t.Context(), address(acl.Worker), queue, handler, worker.Config{FenceEvery: 50 * time.Millisecond}))(t)
	daemons := []func(context.Context) error{w.Run}
	for i, part := range parts(acl.Poller) {
		d := check.Got(dispatcher.New(dispatcher.RoomsOf(parts(acl.Dispatcher)[i]), dispatcher.Config{}))(t)
		p := check.Got(poller.New(poller.RoomsOf(part), poller.Config{}))(t)
		daemons = append(daemons, d.Run, p.Run)
	}
	check.Run(t, daemons...)
	return application{address(acl.Application), queue}
}

// applications are the queues on which the application is played: of one part and of three, by its user, and with the long tests on a cluster.
var applications = map[string]func(t *testing.T) application{
	"one part": func(t *testing.T) application {
		users := fixture.WithUsers(t, "q")
		t.Cleanup(func() { users.ExpectNoRefusal(t) })
		return serveApplication(t, "q", func(role acl.Role) string { return users.URL(t, role) })
	},
	"three parts": func(t *testing.T) application {
		users := fixture.WithUsersOfParts(t, "q")
		t.Cleanup(func() { users.ExpectNoRefusal(t) })
		must(t, store.Create(t.Context(), fixture.Connect(t, users.Server.URL), store.Config{Queue: "q"}, 3))
		return serveApplication(t, "q", func(role acl.Role) string { return users.URL(t, role) })
	},
	"cluster": func(t *testing.T) application {
		long.Only(t)
		server := testkit.Cluster(t)
		must(t, store.Create(t.Context(), fixture.Connect(t, server.URL), store.Config{Queue: "q"}, 3))
		return serveApplication(t, "q", func(acl.Role) string { return server.URL })
	},
}

// TestAnApplicationReadsAndSteersItsModelsAlikeInEachLanguage plays the pages of an application with the rights of its role alone.
func TestAnApplicationReadsAndSteersItsModelsAlikeInEachLanguage(t *testing.T) {
	for place, start := range applications {
		for _, language := range append(asking, "go") {
			t.Run(place+" "+language, func(t *testing.T) {
				t.Parallel()
				app := start(t)
				output, err := app.play(t, language)
				diff := cmp.Diff(shown, output)
				failIf(t, diff != "" || err != nil, "%v, output (-want +got):\n%s", err, diff)
			})
		}
	}
}

func (a application) play(t *testing.T, language string) (string, error) {
	t.Helper()
	if language == "go" {
		shop := check.Got(client.Open(t.Context(), a.address, a.queue, client.Config{By: "shop"}))(t)
		defer func() { must(t, shop.Close()) }()
		p := pages{t: t, Client: shop}
		p.play()
		return p.output.String(), nil
	}
	command := example(t, language, "page", "REDIS_URL="+a.address, "REFRESHD_QUEUE="+a.queue)
	output, err := command.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(output), err
}

// pages are those of the examples in Go.
type pages struct {
	*client.Client

	t      *testing.T
	output strings.Builder
}

func (p *pages) show(values ...any) {
	p.output.WriteString(string(check.Got(json.Marshal(values))(p.t)) + "\n")
}

func (p *pages) until(uid string, holds func(m *model.Model) bool) model.Model {
	for {
		m := check.Got(p.Get(p.t.Context(), uid))(p.t)
		if holds(&m) {
			return m
		}
		select {
		case <-p.t.Context().Done():
			p.t.Fatal(p.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func succeeded(m *model.Model) bool { return !m.LastSuccessAt.IsZero() }

func state(m model.Model) model.Status { return m.Status(time.Now(), true) }

func (p *pages) list(selector string) []string {
	found := check.Got(p.List(p.t.Context(), selector, "", 0))(p.t)
	return append([]string{}, found...)
}

func all(first any, uids []string) []any {
	values := []any{first}
	for _, uid := range uids {
		values = append(values, uid)
	}
	return values
}

func count(replies []client.Reply, outcome client.Outcome) (n int) {
	for _, reply := range replies {
		if reply.Outcome == outcome {
			n++
		}
	}
	return n
}

func (p *pages) play() {
	t, ctx := p.t, p.t.Context()
	outcome := func(reply client.Reply, err error) client.Outcome { return check.Got(reply, err)(t).Outcome }
	guarded := map[string]any{"timeout": "1h", "retries": []any{"1h"}, "guard": []any{map[string]any{"rows": map[string]any{"min": 1}}}, "on_suspect": "hold"}
	var models []client.Definition
	for i := range 30 {
		models = append(models, client.Definition{
			UID: fmt.Sprintf("tbl_%02d", i), Payload: map[string]any{"rows": i}, Rule: "every day at 6 AM", Policy: guarded,
			Labels: map[string]string{"kind": "feed", "tenant": fmt.Sprint("t", i%2)},
		})
	}
	wrong := models[0]
	wrong.UID, wrong.Timezone = "tbl_99", "Mars/Base"
	saved := check.Got(p.PutMany(ctx, append(models, wrong)))(t)
	p.show("saved", count(saved, client.Applied), saved[30].Outcome, saved[30].Field)
	p.show("saved again", count(check.Got(p.PutMany(ctx, models))(t), client.Unchanged))
	p.show(all("tenant t0", p.list("tenant=t0"))...)
	p.show(all("next page", check.Got(p.List(ctx, "tenant=t1, kind=feed", "tbl_05", 3))(t))...)
	if _, err := p.List(ctx, "policy=nightly", "", 0); err != nil {
		p.show("no such list")
	}
	if _, err := p.Get(ctx, "nobody"); errors.Is(err, client.ErrUnknownModel) && len(check.Got(p.History(ctx, "nobody", 10))(t)) == 0 {
		p.show("nobody", nil)
	}
	fresh := check.Got(p.Get(ctx, "tbl_07"))(t)
	failIf(t, !fresh.LastSuccessAt.IsZero() || fresh.UserFriendlyStatus != "" || fresh.Progress != 0, "a new model: %+v", fresh.State)
	p.show("new", fresh.UID, state(fresh), fresh.Why, fresh.RefreshAt.Hour(), nil, nil, nil, fresh.Labels["tenant"])
	p.show("run", outcome(p.Run(ctx, "tbl_07", false)))
	done := p.until("tbl_07", succeeded)
	p.show("refreshed", state(done), done.UserFriendlyStatus, done.Progress, nil, check.Got(p.History(ctx, "tbl_07", 1))(t)[0].Metrics)

	outcome(p.Run(ctx, "tbl_20", false))
	working := p.until("tbl_20", func(m *model.Model) bool { return m.UserFriendlyStatus != "" })
	p.show(append([]any{"working", state(working)}, all(working.UserFriendlyStatus, p.list("status=running"))...)...)
	p.show("disable", outcome(p.Disable(ctx, "tbl_20", "has not paid")))
	stopped := check.Got(p.Get(ctx, "tbl_20"))(t)
	failIf(t, !stopped.RefreshAt.IsZero(), "a disabled model is refreshed at %s", stopped.RefreshAt)
	p.show(append([]any{"disabled", state(stopped), nil}, all(stopped.DisabledReason, p.list("status=disabled"))...)...)

	hold := client.Hold{ID: "move", Reason: "moves house", Selector: "tenant=t1", For: 2 * time.Hour}
	p.show("hold", outcome(p.Hold(ctx, hold)), outcome(p.Run(ctx, "tbl_09", false)))
	held := p.until("tbl_09", func(m *model.Model) bool { return state(*m) == model.StatusParked })
	p.show(append([]any{"held"}, all(held.ParkedBy, p.list("tenant=t1,status=parked"))...)...)
	p.show("release", outcome(p.Release(ctx, "move", 0)), state(p.until("tbl_09", succeeded)))

	outcome(p.Run(ctx, "tbl_13", false))
	failing := p.until("tbl_13", func(m *model.Model) bool { return !m.FailingSince.IsZero() })
	last := check.Got(p.History(ctx, "tbl_13", 1))(t)[0]
	p.show("failing", state(failing), last.Outcome, last.Reason, p.list("status=failing,tenant=t1"), p.list("status=failing,tenant=t0"))

	outcome(p.Run(ctx, "tbl_00", false))
	doubted := p.until("tbl_00", func(m *model.Model) bool { return m.ParkedBy != "" })
	p.show("doubted", state(doubted), doubted.ParkedBy, check.Got(p.History(ctx, "tbl_00", 10))(t)[0].Suspect)
	p.show("accept", outcome(p.Accept(ctx, "tbl_00")), state(p.until("tbl_00", succeeded)))
	p.show("reject", outcome(p.Reject(ctx, "tbl_00")))
}
