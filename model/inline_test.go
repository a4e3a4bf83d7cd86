package model

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// written is a definition with the policy as it was written.
func written(t *testing.T, uid, policy string) Definition {
	t.Helper()
	value, _ := document.Decode([]byte(`{"uid":"`+uid+`","rrule":"FREQ=DAILY","policy":`+policy+`}`), "policy")
	d, err := ParseDefinition(value)
	must(t, err)
	return d
}

const busyPolicy = `{"timeout":"1h","retries":["5m","1h"],"retry_window":"FREQ=DAILY;BYHOUR=1","closed":["b","a"],"never_retry":["gone"],` +
	`"limits":[{"key":"{host(input_url)}","concurrency":4}],"alignment":{"expr":"k < 3 ? retry_at : planned_at"},"notify":["stale"]}`

func TestAPolicyInTheSameBytesIsReadOnceAndIsTheOneThatWouldBeReadAgain(t *testing.T) {
	usual := policy.Default()
	usual.QueueTimeout = usual.Timeout
	a, b := written(t, "a", busyPolicy), written(t, "b", busyPolicy)
	failIf(t, a.inline != b.inline, "expected one policy, found two")
	for _, completed := range []bool{false, true} {
		again, err := ParseDefinition(jsonOf(t, `{"uid":"a","rrule":"FREQ=DAILY","policy":`+busyPolicy+`}`))
		must(t, err)
		if completed {
			again.Complete(usual)
			CompleteAll([]*Definition{&a, &b}, usual)
			failIf(t, a.inline != b.inline, "expected one completed policy, found two")
		}
		text, _ := json.Marshal(again.Inline)
		failIf(t, a.PolicyName != again.Inline.ContentName() || a.policyText() != string(text), "found %s %s\nwant %s %s", a.PolicyName, a.policyText(), again.PolicyName, text)
	}
	failIf(t, written(t, "c", busyPolicy).Inline.QueueTimeout != 0, "expected what is remembered to stay as it was, found it completed otherwise")
}

func TestAPolicyThatIsRefusedIsRefusedAgain(t *testing.T) {
	for range 2 {
		value, _ := document.Decode([]byte(`{"uid":"a","policy":{"timeout":"soon"}}`), "policy")
		_, err := ParseDefinition(value)
		_, want := ParseDefinition(jsonOf(t, `{"uid":"a","policy":{"timeout":"soon"}}`))
		failIf(t, err == nil || err.Error() != want.Error(), "found %v, want %v", err, want)
	}
}

func TestNobodyChangesAPolicyThatManyShare(t *testing.T) {
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			d := written(t, fmt.Sprint("m", i), busyPolicy)
			m := &Model{}
			decision, _, err := m.Put(d, *d.Inline, false, monday)
			failIf(t, err != nil, "found %v", err)
			saved := *decision.Definition
			saved.State = decision.Next
			saved.Lint(false, monday)
			start, _ := saved.Run(true, monday)
			saved.State = start.Next
			saved.Fail(policy.Failure{Reason: "down"}, monday)
			_, _, err = saved.Import(Moved{Definition: d, State: saved.State}, *d.Inline, true, nil, monday)
			failIf(t, err != nil, "found %v", err)
		})
	}
	wait.Wait()
	shared := written(t, "a", busyPolicy)
	fresh, err := readInline(jsonOf(t, busyPolicy))
	must(t, err)
	same := shared.policyText() == fresh.text && shared.PolicyName == fresh.name && reflect.DeepEqual(shared.Inline.Limits, fresh.policy.Limits)
	text, _ := json.Marshal(shared.Inline)
	failIf(t, !same || string(text) != fresh.text, "expected what was read first, found %s", text)
}

func TestAPolicyThatIsReadOnceAGenerationIsNotForgotten(t *testing.T) {
	var m inlines
	first := []byte(`{"timeout":"1h"}`)
	was, err := m.read(first)
	must(t, err)
	for i := 0; m.previous == nil; i++ {
		_, err := m.read(fmt.Appendf(nil, `{"timeout":"%ds"}`, i+1))
		must(t, err)
	}
	is, err := m.read(first)
	must(t, err)
	failIf(t, is != was || m.recent[string(first)] != was, "expected what was read before, and kept for one generation more")
}

func TestWhatIsRememberedOfPoliciesIsBounded(t *testing.T) {
	var m inlines
	first := []byte(`{"timeout":"1h"}`)
	was, err := m.read(first)
	must(t, err)
	most := 0
	for i := range 5_000 {
		_, err := m.read(fmt.Appendf(nil, `{"timeout":"%ds"}`, i+1))
		must(t, err)
		most = max(most, len(m.recent)+len(m.previous))
		failIf(t, m.bytes > maxGeneration, "expected at most %d bytes, found %d", maxGeneration, m.bytes)
	}
	failIf(t, most < 1_000 || most > 2*maxGeneration/2_000, "expected some thousand policies at most, found %d", most)
	is, err := m.read(first)
	must(t, err)
	failIf(t, is == was, "expected the first one forgotten")
	failIf(t, is.name != was.name || is.text != was.text, "expected it read as before, found %s", is.text)
}
