package dashboard

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// staticPage builds the playground as WebAssembly, and returns its directory.
func staticPage(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	out, err := exec.Command("../../../deploy/playground.sh", dir).CombinedOutput()
	stopIf(t, err != nil, "build the playground: %v\n%s", err, out)
	return dir
}

// serveBelow serves a directory as a server of files does, below a path.
func serveBelow(t *testing.T, path, dir string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.StripPrefix(path, http.FileServer(http.Dir(dir))))
	t.Cleanup(server.Close)
	return server.URL + path
}

// heaviest is what a visitor of the page may have to load, in bytes.
const heaviest = 3_500_000

func TestThePlaygroundNeedsNoDashboard(t *testing.T) {
	long.Only(t)
	t.Parallel()
	dir := staticPage(t)
	t.Run("it weighs little", func(t *testing.T) { expectLight(t, filepath.Join(dir, "playground.wasm")) })
	t.Run("it answers as the dashboard does", func(t *testing.T) { expectSameAnswers(t, dir) })
	t.Run("somebody tries a policy", func(t *testing.T) { tryPolicies(t, dir) })
}

func expectLight(t *testing.T, file string) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	program := check.Got(os.ReadFile(file))(t)
	_, _ = zip.Write(program) // into memory
	_ = zip.Close()
	failIf(t, packed.Len() > heaviest, "expected at most %d bytes of WebAssembly in gzip, found %d of %d", heaviest, packed.Len(), len(program))
}

// expectSameAnswers fills the same forms in the page and in the dashboard.
func expectSameAnswers(t *testing.T, dir string) {
	d := sit(t, testkit.Miniredis(t), nil)
	tab := browser.Open(t)
	tab.Go(serveBelow(t, "/docs/playground/", dir))
	tab.AwaitText("Nothing is stored.")
	browser.Eval[bool](tab, fmt.Sprintf("Date.now = () => %d, true", d.Clock.Now().UnixMilli()))
	twiceDaily := string(check.Got(os.ReadFile("../../../examples/policies/twice-daily.txt"))(t))
	for name, form := range map[string]url.Values{
		"nothing":             {},
		"an example":          {"example": {"yaml"}},
		"another example":     {"example": {"nothing such"}},
		"a recovery":          {"answers": {"recovers"}},
		"no worker":           {"answers": {"lost"}, "text": {twiceDaily}},
		"successes":           {"answers": {"succeeds"}, "text": {twiceDaily}},
		"other answers":       {"answers": {"nonsense"}, "text": {twiceDaily}},
		"JSON":                {"text": {`{"name": "a", "rrule": "FREQ=DAILY;BYHOUR=2", "timezone": "Asia/Kolkata", "timeout": "1h", "retries": ["5m"], "jitter": 0.2}`}},
		"a model":             {"text": {"{uid: a, rrule: daily at 6am, payload: {a: 1}}"}},
		"a model of a policy": {"text": {"{uid: a, policy: nobody}"}},
		"an expression":       {"text": {"retries: {expr: \"k < 5 ? k * 60 : false\"}\nrrule: FREQ=DAILY\n"}},
		"a wrong sentence":    {"text": {"Refresh it daily\nDance on the roof\n"}},
		"a wrong field":       {"text": {"retries: [5m]\ncolour: red\n"}},
		"two policies":        {"text": {"name: a\n---\nname: b\n"}},
		"a long text":         {"text": {strings.Repeat("x", 65<<10)}},
		"signs":               {"text": {"name: a;b&c=d%41+ü\n"}},
		"an attack":           {"text": {attack("text")}, "answers": {attack("answers")}, "example": {attack("example")}},
		"an attack as a name": {"text": {"name: x\nrrule: FREQ=DAILY\ndisabled_reason: " + quoted(attack("reason"))}},
	} {
		_, want := d.ask(d.request(http.MethodPost, home+"playground", form))
		const begins = `<div class="grid play">`
		_, want, _ = strings.Cut(want, begins)
		want = begins + want
		want, _, _ = strings.Cut(want, "\n<script ")
		got := browser.Eval[string](tab, "answer("+browser.Quote(form.Encode())+")", chromedp.EvalAwaitPromise)
		failIf(t, !strings.Contains(want, "playground-result"), "%s: expected a page of the dashboard", name)
		equal(t, strings.Split(want, "\n"), strings.Split(got, "\n"))
		if t.Failed() {
			t.Fatalf("%s: expected what the dashboard answers", name)
		}
	}
	tab.Leave()
}

func tryPolicies(t *testing.T, dir string) {
	tab := browser.Open(t)
	tab.Go(serveBelow(t, "/docs/playground/", dir))
	tab.AwaitText("Nothing is stored.")
	look(t, tab)
	tab.Size(390, 800)
	fits(t, tab)
	tab.Size(1280, 800)

	const shown = "document.querySelector('#playground-result img')?.naturalWidth > 0"
	tab.Fill("text", string(check.Got(os.ReadFile("../../../examples/policies/twice-daily.txt"))(t)))
	tab.AwaitText("Never retry on ValidationError")
	tab.Await(shown)
	tab.Press("As a table")
	tab.AwaitText("retries that helped")
	tab.Fill("text", "retries: [5m]\ncolour: red\n")
	tab.AwaitText("your text line 2: colour: expected")
	tab.Fill("text", attack("typed"))
	tab.AwaitText("<svg onload")
	failIf(t, browser.Eval[bool](tab, shown), "expected no picture beside what is wrong")
	tab.Go(tab.Address() + "?text=" + url.QueryEscape(attack("linked")))
	tab.AwaitText("<svg onload")

	tab.Go(strings.Split(tab.Address(), "?")[0] + "?answers=recovers&text=" + url.QueryEscape("- Refresh every hour\n"))
	tab.Await(shown + " && document.querySelector('img').alt.includes('three attempts fail')")
	browser.Eval[bool](tab, "document.getElementById('answers').focus(), document.getElementById('answers').value = 'lost', true")
	tab.Keys("\t\r") // the button, which waits for nothing
	tab.Await("document.querySelector('img').alt.includes('no worker answers')")

	must(t, os.WriteFile(filepath.Join(dir, "playground.wasm"), []byte("<html>"), 0o600))
	tab.Go(tab.Address() + "&again")
	tab.AwaitText("The playground cannot be loaded")
	tab.Leave()
}
