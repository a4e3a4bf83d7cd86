package dashboard

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/refreshd/refreshd/internal/care/acl"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestAnAutoscalerIsToldTheSlotsThatThePlanNeedsWithTheRightsOfAViewer(t *testing.T) {
	users := fixture.WithUsers(t, "bigtables")
	d := sitAt(t, fixture.New(t, users.Server), "", users.Client(t, acl.Viewer), withToken)
	d.put(`"uid":"a","refresh":"now","rrule":"FREQ=MINUTELY;INTERVAL=5"`)
	d.start()
	users.Forgive(t)
	for address, want := range map[string]int{
		"/scale": 200, "/scale?queue=bigtables&horizon=1h": 200, "/scale?queue=other": 404, "/scale?horizon=2h": 400, "/scale?horizon=soon": 400,
	} {
		request := d.request(http.MethodGet, address, nil)
		request.Header.Set("Accept", "application/json")
		response, _ := d.ask(request)
		failIf(t, response.StatusCode != 401, "%s: want the token asked for, got %s", address, response.Status)
		request = d.request(http.MethodGet, address, nil)
		request.Header.Set("Authorization", "Bearer "+secret)
		response, text := d.ask(request)
		failIf(t, response.StatusCode != want, "%s: want %d, got %s: %s", address, want, response.Status, text)
		if want == 200 {
			var told operate.Slots
			testkit.Must(t, json.Unmarshal([]byte(text), &told))
			failIf(t, told.Slots != 1 || told.Running != 1 || told.Starts == 0, "%s: want one slot for the attempt that runs and those that follow, got %s", address, text)
		}
	}
	users.ExpectNoRefusal(t)
}
