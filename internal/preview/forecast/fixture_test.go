package forecast

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

// seven is when the fleets of these tests are looked at.
var seven = time.Date(2026, 1, 5, 7, 0, 0, 0, time.UTC)

func clock(t testing.TB, text string) time.Time {
	t.Helper()
	at := check.Got(time.Parse(time.DateTime, "2026-01-05 "+text))(t)
	return at
}

var compiled schedule.Cache

// put is a model as it was saved at an instant; fields are those of its definition.
func put(t testing.TB, uid string, at time.Time, fields string) *model.Model {
	t.Helper()
	var value any
	must(t, json.Unmarshal(fmt.Appendf(nil, `{"uid":%q,%s}`, uid, fields), &value))
	d := check.Got(model.ParseDefinition(value))(t)
	p := policy.Default()
	if d.Inline != nil {
		p = *d.Inline
	}
	decision, _, err := (&model.Model{UID: uid}).Put(d, p, false, at)
	must(t, err)
	m := *decision.Definition
	m.State = decision.Next
	must(t, m.Resolve(p, compiled.Get))
	return &m
}

const (
	hourlyRule = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["1m"]}`
	dailyRule  = `"rrule":"FREQ=DAILY;BYHOUR=9","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["1m"]}`
)
