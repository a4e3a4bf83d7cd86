package poller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

func TestAResultCountsForWhatItSaysWhateverElseIsWrongWithIt(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("good", "bad", "date", "long", "later", "status")
		b.Clock.Turn(time.Second)
		b.Say(
			b.result("success", "good", `"changed":"true"`),
			b.result("failure", "bad", `"reason":{"code":503}`, `"error_type":"Unavailable"`, `"retry_after":-5`),
			b.result("failure", "date", `"retry_after":"Sat, 21 Nov 2026 07:30:00 GMT"`),
			b.result("failure", "long", `"retry_after":"400d"`),
			b.result("postponed", "later"),
			b.result("user_friendly_status", "status", `"status":"half"`, `"progress":250`),
		)
		if round := b.round(); round.Applied != 6 || round.Rejected != 0 {
			t.Errorf("want six applied, got %+v", round)
		}
		histories := map[string]string{ // what of the entry matters
			"good": `"is":"success"|"ignored":["changed"]`, "bad": `"is":"failure"|"type":"Unavailable"|"ignored":["reason","retry_after"]`,
			"date": `"is":"failure"|"next":1799000`, "long": `"ignored":["retry_after"]|"next":0`,
			"later": `"is":"postponed"|"ignored":["retry_after"]|"next":300000`,
		}
		for uid, want := range histories {
			history := strings.Join(b.List(b.Store.Keys.History(uid)), "\n")
			for _, part := range strings.Split(want, "|") {
				failIf(t, !strings.Contains(history, part), "%s: want %s, got %s", uid, part, history)
			}
		}
		if hash := b.Model("status"); hash["user_friendly_status"] != "half" || hash["progress"] != "" {
			t.Errorf("want the status without progress, got %v", hash)
		}
		stats := b.Stats()
		if got := [3]int{stats["success"], stats["failure"], stats["ignored_fields"]}; got != [3]int{1, 3, 6} {
			t.Errorf("want one success, three failures and six fields ignored, got %v", got)
		}
	})
}

func TestARejectedMessageNamesItsModelInRedisAndInTheLog(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		var text testkit.Buffer
		log := zerolog.New(&text).Level(zerolog.WarnLevel)
		p := b.poller(b.Store, poller.Config{Log: &log})
		b.Say(
			fixture.Result("dance", "typed", "a1"),
			`{"type":"success","big_table_uid":"torn","refresh_attempt_uid":"x","request_attempt_uid":"y"}`,
			`{"type":"success","big_table_uid":7}`,
			"garbage",
		)
		b.Command(`{"type":"put","uid":"mistyped","polcy":{}}`, `{"type":"jump","uid":"typed"}`, `{"type":"run","uid":"nobody"}`)
		b.roundOf(p)
		entries, err := b.Store.Fleet().Rejected(t.Context())
		must(t, err)
		var uids []string
		for _, entry := range entries {
			uids = append(uids, entry.UID)
		}
		equal(t, []string{"typed", "torn", "", "", "mistyped", "typed", "nobody"}, uids)
		for _, entry := range entries {
			if want := `"uid":"` + entry.UID + `"`; entry.UID != "" && !strings.Contains(text.String(), want) {
				t.Errorf("want a line with %s, got\n%s", want, text.String())
			}
		}
	})
}

func TestAFloodOfRejectedMessagesIsLoggedInFewLines(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	var text testkit.Buffer
	log := zerolog.New(&text).Level(zerolog.WarnLevel)
	p := b.poller(b.Store, poller.Config{Log: &log})
	for i := range 64 {
		b.Say(fixture.Result("dance"+strings.Repeat("!", i), "m", "a1"))
	}
	b.roundOf(p)
	if lines := strings.Count(text.String(), "message rejected"); lines != 7 { // 1, 2, 4 ... 64
		t.Errorf("want 7 lines, got %d:\n%s", lines, text.String())
	}
}
