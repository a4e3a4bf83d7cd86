package dashboard

import (
	"net/url"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestThePlaygroundTellsHowARuleWasReadAndItsNextThreeTimes(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	for text, want := range map[string]string{
		"Refresh it daily at 6am Berlin time": "Read as: every day at 06:00 (Europe/Berlin); next: ",
		"{uid: a, rrule: daily at 6am}":       "Read as: every day at 06:00 (UTC); next: ",
		"Allow 2 hours to complete":           "",
	} {
		page := d.page(home + "playground?text=" + url.QueryEscape(text))
		_, said, _ := strings.Cut(page, `<p class="hint">Read as`)
		said, _, _ = strings.Cut("Read as"+said, ".</p>")
		if want == "" && strings.Contains(page, "Read as") || want != "" && (!strings.HasPrefix(said, want) || strings.Count(said, " 06:00") != 4) {
			t.Errorf("%s: expected %q and three times, found %q", text, want, said)
		}
	}
}
