package operate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/admin/apply"
	"github.com/refreshd/refreshd/internal/admin/transfer"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// save saves a new model, one that is as it was, others that are not, one of them twice, and a wish.
func save(ctx context.Context, t *testing.T, o Operator) (map[string]int, error) {
	t.Helper()
	requests := []*Request{put(t, "m0", 2), put(t, "m1", 1), put(t, "new", 1), put(t, "new", 2), put(t, "m2", 1), put(t, "soon", 1)}
	requests[4].Command.Definition.Refresh, requests[5].Command.Definition.Refresh = model.RefreshNow, model.RefreshNow
	tally, err := o.Save(ctx, func(take func(definitions.Model) error) error {
		for _, r := range requests {
			at := func(string) string { return "line" }
			if err := take(definitions.Model{Document: definitions.Document{Position: at}, Definition: r.Command.Definition}); err != nil {
				return err
			}
		}
		return nil
	}, func([]Outcome) error { return nil })
	return tally.Results, err
}

// steer carries out the same for some models, and lists what became of each.
func steer(ctx context.Context, o Operator, same model.Command, uids ...string) (results []string, err error) {
	_, err = o.ExecuteEach(ctx, same, uids, func(outcomes []Outcome) error {
		for _, one := range outcomes {
			results = append(results, one.Result+" "+one.UID)
		}
		return nil
	})
	return results, err
}

func steering(same model.Command) func(*testing.T, context.Context, Operator) (any, error) {
	return func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		return steer(ctx, o, same, "m0", "m1", "m2", "nobody")
	}
}

const exported = `{"kind":"calendar","calendar":{"name":"feast","rrule":"FREQ=YEARLY","dtstart":"2026-12-24T00:00:00","for":"24h"}}
{"kind":"limit","key":"host:a","running":3}
{"kind":"policy","name":"p","policy":{"timeout":"1h"}}
{"kind":"model","uid":"m0","payload":{"n":3},"policy":"p"}
{"kind":"model","uid":"new","payload":{"n":3},"policy":"p","state":{"refresh_at":"2026-11-27T00:00:00.000Z"}}
{"kind":"model","uid":"m2","payload":{"n":1},"rrule":"FREQ=YEARLY","dtstart":"2026-01-01T00:00:00"}
`

// patientCommand is a command that waits for a Redis which does not answer, and tells something.
type patientCommand struct {
	name   string
	do     func(*testing.T, context.Context, Operator) (any, error)
	gaveUp []string // what it says beside that when it gives up
}

// patientCommands are those that change many models, or what many have.
var patientCommands = []patientCommand{
	{"model put", func(t *testing.T, ctx context.Context, o Operator) (any, error) { return save(ctx, t, o) }, []string{"after 0 documents: "}},
	{"model run", steering(model.Command{Type: model.CommandRun}), []string{"after 0 models; go on from m0: "}},
	{"model run --force", steering(model.Command{Type: model.CommandRun, Force: true}), []string{"after 0 models; go on from m0: "}},
	{"model rm", steering(model.Command{Type: model.CommandRemove}), []string{"after 0 models; go on from m0: "}},
	{"model enable", steering(model.Command{Type: model.CommandEnable}), nil},
	{"model disable", steering(model.Command{Type: model.CommandDisable, Reason: "moves"}), nil},
	{"model run -l", func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		return nil, flow.OfQueue(o.Queue).BeginBulk(ctx, "run-1", model.Bulk{Action: model.BulkRun})
	}, nil},
	{"model import", importLines(false), nil},
	{"model import --replace", importLines(true), nil},
	{"apply", func(t *testing.T, ctx context.Context, o Operator) (any, error) {
		dir := t.TempDir()
		text := "uid: new\npolicy: p\n---\nname: p\ntimeout: 2h\n---\nuid: also\npolicy: p\n"
		failIf(t, os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(text), 0o600) != nil, "expected a file")
		directory, err := definitions.ReadDirectory(dir)
		must(t, err)
		plan, err := apply.New(ctx, o.Queue, directory, apply.Options{Owner: "ann", MaxDelete: "1"})
		if err == nil {
			err = plan.CarryOut(ctx)
		}
		if err != nil {
			return nil, err
		}
		return plan.Summary(true), nil
	}, nil},
	{"level --apply", func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		return o.Level(ctx, LevelRequest{InputRequest: InputRequest{For: "31d", Drain: "1/m"}, Within: "10m", Apply: true})
	}, nil},
	{"policy put", func(t *testing.T, ctx context.Context, o Operator) (any, error) {
		p, err := policy.Parse(map[string]any{"name": "p", "timeout": "2h", "rrule": "FREQ=DAILY"})
		must(t, err)
		found, err := o.putPolicy(ctx, definitions.Source{Document: definitions.Document{Position: func(string) string { return "" }}, Policy: p}, false, 0, o.Queue.Fleet().PutPolicy)
		return found.Result, err
	}, nil},
	{"policy rm", func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		p := policy.Default()
		p.Name = "p"
		if err := o.Queue.Fleet().PutPolicy(ctx, p); err != nil {
			return nil, err
		}
		found, err := o.RemovePolicy(ctx, "p", true)
		return found.Result, err
	}, nil},
	{"hold", func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		hold, _, err := o.Hold(ctx, HoldRequest{ID: "h1", Reason: "moves"})
		return hold.ID, err
	}, []string{"refreshd release h1"}},
	{"calendar put", func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		calendar, err := schedule.ParseCalendar(map[string]any{"name": "feast", "rrule": "FREQ=YEARLY", "dtstart": "2026-12-24T00:00:00", "for": "24h"})
		if err != nil {
			return nil, err
		}
		closed, err := o.PutCalendars(ctx, []schedule.Calendar{calendar})
		return len(closed), err
	}, nil},
}

// idleCommands run no script.
var idleCommands = []patientCommand{
	{"limit rm of one that is not set", func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		return flow.OfQueue(o.Queue).RemoveLimit(ctx, "host:nobody")
	}, nil},
	{"what a bulk asks before it waits", func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		var told []any
		err := o.Queue.Each(func(part *store.Store) error {
			signs, err := part.Report().Liveness(ctx)
			told = append(told, signs.Now)
			return err
		})
		return told, err
	}, nil},
}

func importLines(replace bool) func(*testing.T, context.Context, Operator) (any, error) {
	return func(_ *testing.T, ctx context.Context, o Operator) (any, error) {
		var refused []string
		i := transfer.Import{Queue: o.Queue, Replace: replace, By: o.By, Refused: func(r transfer.Refusal) { refused = append(refused, r.UID) }}
		err := i.Read(ctx, "lines", strings.NewReader(exported))
		return fmt.Sprint(i.Models, i.Policies, i.Calendars, i.Limits, refused), err
	}
}
