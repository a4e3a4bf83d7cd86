package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// An operator on call comes from an alert to the cause with the mouse, holds the models with the keyboard, mends and releases on a phone, and the audit
// shows all of it.
func TestAnOperatorOnCallFindsTheCauseHoldsMendsAndReleases(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, Config{By: "ann"})
	f.policies("name: feeds\nrrule: FREQ=DAILY;BYHOUR=6\ntimeout: 10m\nretries: [1h]\ncircuit: {key: '{host(input_url)}', open_after: 3 of 3, probe: 2m}\n")
	for n := range 5 {
		f.Command(fmt.Sprintf(`{"type":"put","uid":"tbl_%d","refresh":"now","policy":"feeds","payload":{"input_url":"https://host03.example/%[1]d.csv"}}`, n))
	}
	f.Command(`{"type":"put","uid":"well","refresh":"now","policy":"feeds","payload":{"input_url":"https://host01.example/a.csv"}}`)
	fails := func(entry fixture.Entry) (string, []string) {
		if entry.UID == "well" {
			return "success", nil
		}
		return "failure", []string{`"error_type":"http_503"`, `"reason":"GET https://host03.example/: 503 Service Unavailable"`}
	}
	f.turn(time.Minute, fails)
	f.turn(time.Minute, fails)
	f.live()
	tab := browser.Open(t)

	tab.Go(f.url("")) // from the alert, with the mouse
	tab.AwaitText("The circuit of host=host03.example is open.")
	tab.Follow("Failures")
	tab.AwaitText("503 Service Unavailable")
	tab.Follow("Show them")
	tab.AwaitText("Shown: 5 models with error=")

	tab.Go(f.url("")) // with the keyboard
	tab.KeysFollow("/")
	tab.Await(`document.activeElement.id === "l"`)
	tab.Keys("host=host03.example")
	tab.KeysFollow("\r")
	tab.AwaitText("Shown: 5 models")
	tab.TabTo("hold")
	tab.KeysFollow("\r")
	tab.TabTo("reason")
	tab.Keys("503 since three")
	tab.TabTo("number")
	tab.Keys("5")
	tab.TabTo("hold 5 models")
	tab.KeysFollow("\r")
	tab.AwaitText("503 since three")

	tab.Size(390, 800) // the source is mended, on the way to it
	tab.Go(f.url("steering"))
	fits(t, tab)
	tab.Press("Close")
	tab.Follow("Close now: host=host03.example")
	tab.Follow(`form[action$="/hold/release"] button`)
	tab.AwaitText("letting go")
	tab.Go(f.url("failures"))
	fits(t, tab)
	tab.Press("Run these")
	tab.Follow("Run 5 now")
	check.Eventually(t, "five successes", func() bool {
		for entry, found := f.Take(); found; entry, found = f.Take() {
			f.Say(fixture.Result("success", entry.UID, entry.AttemptUID))
		}
		f.Clock.Turn(100 * time.Millisecond)
		return f.Stats()["success"] == 6
	})
	tab.Go(f.url(""))
	tab.Await(`!document.body.innerText.includes("host03") && !document.body.innerText.includes("503")`)

	tab.Go(f.url("audit"))
	fits(t, tab)
	accessible(t, tab)
	tab.Await(`!document.body.innerText.includes("so far")`)
	told := tab.Text()
	for _, want := range []string{"ann model run error=", "(5 changed)", "ann release ", "held by ann: 503 since three", "ann circuit close host=host03.example", "ann hold ", " host=host03.example: 503 since three", "dashboard 127.0.0.1"} {
		if !strings.Contains(told, want) {
			t.Errorf("got %s, want %q in the audit", told, want)
		}
	}
}
