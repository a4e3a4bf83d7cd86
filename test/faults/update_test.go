package faults

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/admin/doctor"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// update is a queue whose daemons are of an older release until they are replaced.
type update struct {
	*fleet
	program string // of the older release
}

// group are models in one state. The beginning of their names says which message the worker sends.
type group struct {
	name, fields string
	count        int
}

var oldGroups = []group{
	{"busy", `"policy":"busy"`, 20}, // the traffic
	{"plain", `"policy":"steady"`, 20},
	{"once", `"policy":"final"`, 5},
	{"own", `"rrule":"FREQ=YEARLY","policy":{"retries":["2h"],"fresh_within":"1d"}`, 5},
	{"fail-retried", `"policy":"steady","refresh":"now"`, 5},
	{"fail-final", `"policy":"final"`, 5},
	{"fail-own", `"policy":{"retries":["2h"],"timeout":"1h","fresh_within":"1d"}`, 5},
	{"fail-circuit", `"policy":"limited"`, 5},
	{"off", `"policy":"promised"`, 5},
	{"never", `"policy":"promised"`, 5},
	{"kept", `"policy":"promised","refresh":"now"`, 5},
	{"stale", `"policy":"hasty","refresh":"now"`, 5},
	{"silent", `"policy":"steady","refresh":"now"`, 5},
	{"silent-limited", `"policy":"limited"`, 5},
	{"held", `"policy":"final"`, 5},
	{"closed", `"policy":"nightly"`, 5},
	{"slow", `"policy":"steady"`, 20}, // which a bulk runs, one a minute
}

var oldPolicies = []string{
	`{"name":"busy","rrule":"FREQ=SECONDLY","timeout":"10s","retries":[]}`,
	`{"name":"steady","rrule":"FREQ=YEARLY","timeout":"1h","retries":["2h"]}`,
	`{"name":"final","timeout":"1h","retries":[],"on_exhausted":"give_up"}`,
	`{"name":"promised","rrule":"FREQ=YEARLY","timeout":"1h","fresh_within":"1h","warn_within":"30m"}`,
	`{"name":"hasty","rrule":"FREQ=YEARLY","timeout":"1h","fresh_within":"2s","warn_within":"1s"}`,
	`{"name":"limited","timeout":"1h","retries":["2h"],"limits":[{"key":"{label.tenant}","running":1}],"circuit":{"key":"{label.tenant}","open_after":"1 of 1","on":["network"],"probe":"1h"}}`,
	`{"name":"nightly","timeout":"1h","closed":["nightly"]}`,
}

func (g group) lines() string {
	var text strings.Builder
	for i := range g.count {
		fmt.Fprintf(&text, `{"uid":"%s-%d",%s,"labels":{"tenant":%[1]q},"payload":{"input_url":"http://feed/%[2]d"}}`+"\n", g.name, i, g.fields)
	}
	return text.String()
}

// old runs a command of the older release.
func (u *update) old(in string, args ...string) string {
	u.t.Helper()
	command := exec.CommandContext(u.ctx, u.program, append(args, "--redis", u.Server.URL)...)
	command.Stdin = strings.NewReader(in)
	out, err := command.CombinedOutput()
	stopIf(u.t, err != nil, "%v: %v\n%s", args, err, out)
	return string(out)
}

func (u *update) startOld(name string) *testkit.Process {
	u.t.Helper()
	return testkit.Start(u.t, u.program, name, "--redis", u.Server.URL)
}

// settle makes the world of the older release, and waits until each group is in its state.
func (u *update) settle() {
	u.t.Helper()
	for _, policy := range oldPolicies {
		u.old(policy, "policy", "put", "-")
	}
	now, err := u.Store.Now(u.ctx)
	must(u.t, err)
	yesterday := now.Add(-24 * time.Hour).Format(time.DateOnly)
	u.old("name: nightly\nrrule: FREQ=YEARLY\nfor: 4d\ndtstart: "+yesterday, "calendar", "put", "-")
	u.old("", "hold", "-l", "tenant=held", "--reason", "moves")
	for _, g := range oldGroups {
		u.old(g.lines(), "model", "put", "--format", "jsonl", "-")
	}
	u.old("", "model", "disable", "-l", "tenant=off")
	u.run(func(ctx context.Context) error { // its command ends with the test
		err := exec.CommandContext(ctx, u.program, "model", "run", "-l", "tenant=slow", "--rate", "1/m", "--redis", u.Server.URL).Run()
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	k := u.Store.Keys
	for key, count := range map[string]int{k.Disabled: 10, k.Failing: 16, k.Stale: 5, k.Parked: 18, k.Bulks: 1} {
		check.Eventually(u.t, fmt.Sprintf("%s has %d", key, count), func() bool { return len(u.Scores(key)) == count })
	}
}

// answer is a worker that goes on through the update.
func (u *update) answer(ctx context.Context) error {
	client := u.Server.Client(u.t)
	return serve(ctx, client, u.Store.Keys.Input, 10, func(e entry) {
		text := fixture.Result("success", e.UID, e.AttemptUID)
		switch {
		case strings.HasPrefix(e.UID, "silent"):
			return
		case strings.HasPrefix(e.UID, "fail"):
			text = fixture.Result("failure", e.UID, e.AttemptUID, `"reason":"no route to host","error_type":"network"`)
		}
		client.RPush(context.WithoutCancel(ctx), u.Store.Keys.Output, text)
	})
}

// busy waits until each busy model has succeeded after now.
func (u *update) busy() {
	u.t.Helper()
	began, err := u.Store.Now(u.ctx)
	must(u.t, err)
	for i := range 20 {
		uid := fmt.Sprint("busy-", i)
		check.Eventually(u.t, uid+" succeeds", func() bool { return u.Model(uid)["last_success_at"] > model.FormatTime(began) })
	}
}

// unchanged are the models that nothing happens to, as they are stored.
func (u *update) unchanged() (all []map[string]string) {
	u.t.Helper()
	for _, g := range oldGroups {
		for i := range g.count {
			if uid := fmt.Sprint(g.name, "-", i); g.name != "busy" && g.name != "slow" {
				all = append(all, u.Model(uid))
			}
		}
	}
	return all
}

// TestAnUpdateUnderTrafficNeedsNoRepairByHand replaces one daemon of the release before after the other. Its poller saves a model while a dispatcher of
// this release runs, and its dispatcher is the last that ends.
func TestAnUpdateUnderTrafficNeedsNoRepairByHand(t *testing.T) {
	long.Only(t)
	t.Parallel()
	program, commit := oldBinary(t)
	u := &update{program: program}
	u.fleet = newFleet(t)
	k := u.Store.Keys
	formerDispatcher, formerPoller := u.startOld("dispatcher"), u.startOld("poller")
	u.run(u.answer)
	u.settle()
	stored := u.unchanged()

	u.start("dispatcher")
	u.busy()
	u.Command(`{"type":"put","uid":"late-1","policy":"promised","payload":{}}`)
	check.Eventually(t, "the older poller saves a model", func() bool { return u.Model("late-1")["freshness"] == "never" })
	poller := u.poller("next")
	poller.AwaitOutput(t, `"message":"started"`)
	u.busy()
	stopAll(t, formerPoller)
	check.Eventually(t, "the next poller leads", func() bool { return u.Redis.Get(u.ctx, k.Leader).Val() == "next" })
	u.busy()
	stopAll(t, formerDispatcher)
	u.busy()

	report, err := doctor.Check(u.ctx, fixture.Open(t, u.Server.URL, store.Config{}), doctor.Options{})
	must(t, err)
	findings := slices.DeleteFunc(report.Findings, func(f doctor.Finding) bool { return f.Code == "persistence" || f.Code == "outbox" })
	failIf(t, len(findings) > 0, "want nothing found, found %+v", findings)
	equal(t, stored, u.unchanged())
	at := redis.Millis(model.Never)
	never := u.Redis.ZCount(u.ctx, k.Late, at, at).Val() // off, never, own and fail-own, and the one that was saved last
	failIf(t, never != 21, "want 21 models that never succeeded, found %d", never)
	rejected := u.List(k.Rejected)
	failIf(t, len(rejected) > 0, "want no message rejected, found %v", rejected)
	t.Logf("from %s", commit)
}
