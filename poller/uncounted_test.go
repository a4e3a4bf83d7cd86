package poller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestASuccessAfterADisableOrAForcedRunIsStaleAndOnlyWhatWasAnsweredIsADuplicate(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("stopped", "forced")
		answers := []string{b.result("success", "stopped"), b.result("success", "forced")}
		b.Command(`{"type":"disable","uid":"stopped"}`, `{"type":"run","uid":"forced","force":true}`)
		b.round()
		b.Say(answers...)
		b.round()
		if stats := b.Stats(); stats["stale"] != 2 || stats["duplicate"] != 0 {
			t.Errorf("want 2 stale results and no duplicate, got %v", stats)
		}
		b.dispatch()
		answer := b.result("success", "forced")
		b.Say(answer, answer, answers[1])
		b.round()
		if stats := b.Stats(); stats["success"] != 1 || stats["stale"] != 3 || stats["duplicate"] != 1 {
			t.Errorf("want 1 success, 3 stale and 1 duplicate, got %v", stats)
		}
	})
}

func TestAttemptsThatDoNotCountPushNoFailureOutOfTheHistory(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		failed := b.Attempt("a")
		b.Say(b.result("failure", "a", `"reason":"HTTP 503"`))
		b.round()
		for i := range 10 {
			b.Clock.Turn(time.Second)
			b.dispatch()
			b.Say(b.result([]string{"interrupted", "postponed"}[i%2], "a", `"retry_after":0`))
			b.round()
		}
		history := b.List(b.Store.Keys.History("a"))
		if len(history) != 2 || !strings.Contains(history[0], `"is":"postponed"`) || !strings.Contains(history[0], `"times":10`) ||
			!strings.Contains(history[1], fmt.Sprintf(`"uid":%q`, failed)) {
			t.Errorf("want the last of ten that do not count before the failure, got\n%s", strings.Join(history, "\n"))
		}
		b.dispatch()
		b.Command(`{"type":"run","uid":"a","force":true}`)
		b.round()
		b.dispatch()
		b.Say(b.result("interrupted", "a"))
		b.round()
		if history := b.List(b.Store.Keys.History("a")); len(history) != 4 || strings.Contains(history[0], `"times"`) {
			t.Errorf("want a run by hand to end the row, got\n%s", strings.Join(history, "\n"))
		}
	})
}
