package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// dearModel is refreshed by a rule that was admitted and has become too dear: its next occurrence is two centuries away.
func dearModel(t *testing.T, policyText string) *Model {
	t.Helper()
	m := &Model{UID: "tbl_1", Rule: "FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0", Dtstart: "2020-01-01T00:00:00"}
	if err := m.Resolve(policyOf(t, policyText), schedule.Parse); err != nil {
		t.Fatal(err)
	}
	m.RefreshAt = monday
	return m
}

const tooManySteps = "rrule: expected rules that find their next occurrence in at most 4000 steps, found more steps after "

func TestARuleThatTakesTooManyStepsIsAFaultAndItsModelLooksAgainAnHourLater(t *testing.T) {
	for name, text := range map[string]string{"plain": `{"timeout":"1m"}`, "with a spread": `{"timeout":"1m","spread":"10m"}`} {
		t.Run(name, func(t *testing.T) {
			m := dearModel(t, text)
			m.State = m.Start(monday, "a1").Next
			m.RuleError = ""
			now := monday.Add(time.Second)
			next := m.Succeed(now, nil).Next
			if !next.RefreshAt.Equal(now.Add(time.Hour)) || next.Why != "rule takes too many steps: look again later" || next.Disabled {
				t.Errorf("next %s: %s", next.RefreshAt, next.Why)
			}
			if want := tooManySteps + "2026-01-05T00:00:01Z"; m.RuleError != want {
				t.Errorf("found the fault %q, want %q", m.RuleError, want)
			}
			if f := m.Forecast(now); !strings.HasPrefix(f.RuleError, tooManySteps) {
				t.Errorf("the forecast says %q", f.RuleError)
			}
		})
	}
}

func TestAFailureUnderARuleThatTakesTooManyStepsIsRetried(t *testing.T) {
	m := dearModel(t, `{"timeout":"1m","retries":["5m"]}`)
	m.State = m.Start(monday, "a1").Next
	decision := m.Fail(policy.Failure{Reason: "HTTP 500"}, monday.Add(time.Second))
	if want := monday.Add(5*time.Minute + time.Second); !decision.Next.RefreshAt.Equal(want) || decision.Final {
		t.Errorf("next %s: %s", decision.Next.RefreshAt, decision.Next.Why)
	}
}

func TestARetryWindowThatTakesTooManyStepsIsOpenAndAFault(t *testing.T) {
	m := &Model{UID: "tbl_1", State: State{RefreshAt: monday}}
	window := "FREQ=SECONDLY;INTERVAL=86430;BYHOUR=0;BYMINUTE=0,1,2,3,4,5,6,7,8"
	if err := m.Resolve(policyOf(t, `{"timeout":"1m","retries":["5m"],"retry_window":"`+window+`"}`), schedule.Parse); err != nil {
		t.Fatal(err)
	}
	m.AttemptNo = 1
	next := m.Fail(policy.Failure{}, monday).Next
	if want := "retry_window" + strings.TrimPrefix(tooManySteps, "rrule"); !next.RefreshAt.Equal(monday.Add(5*time.Minute)) || !strings.HasPrefix(m.RuleError, want) {
		t.Errorf("next %s, fault %q", next.RefreshAt, m.RuleError)
	}
}
