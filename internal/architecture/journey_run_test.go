package architecture

import (
	"bufio"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/poller"
)

// stages are the journeys in the order in which TestTravel makes them.
var stages = []string{"A put", "A due model", "A failed result"}

// stageVariable tells TestTravel how many of the journeys to make.
const stageVariable = "REFRESHD_TEST_STAGE"

// TestTravel makes the first journeys. It is run by the test below, which counts what they run.
func TestTravel(t *testing.T) {
	stage, err := strconv.Atoi(os.Getenv(stageVariable))
	if err != nil {
		t.Skip("run by TestEachFunctionThatAJourneyRunsIsOnThePage")
	}
	q := fixture.New(t, testkit.Miniredis(t))
	q.Redis.HSet(t.Context(), q.Store.Keys.Policies(), "nightly", `{"name":"nightly","timeout":"10m","retries":["1m","5m"],"jitter":0.2}`)
	p, err := poller.New(q.Store, poller.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatcher.New(q.Store, dispatcher.Config{})
	if err != nil {
		t.Fatal(err)
	}
	journeys := []func() error{
		func() error {
			q.Command(`{"type":"put","uid":"tbl_1","payload":{"input_url":"https://example.com/feed.csv"},"rrule":"FREQ=DAILY;BYHOUR=8",` +
				`"timezone":"UTC","policy":"nightly"}`)
			_, err := p.RunOnce(t.Context())
			return err
		},
		func() error {
			q.Clock.Turn(2 * time.Hour)
			_, err := d.RunOnce(t.Context())
			return err
		},
		func() error {
			entry, _ := q.Take()
			q.Clock.Turn(time.Second)
			q.Say(fixture.Result("failure", entry.UID, entry.AttemptUID, `"reason":"HTTP 503"`))
			_, err := p.RunOnce(t.Context())
			return err
		},
	}
	for i := range stage {
		if err := journeys[i](); err != nil {
			t.Fatal(err)
		}
	}
	if got := q.Model("tbl_1")["refresh_why"]; stage == len(journeys) && !strings.HasPrefix(got, "retry 1/2") {
		t.Errorf("refresh_why %q, want a retry", got)
	}
}

// TestEachFunctionThatAJourneyRunsIsOnThePage counts what each stage runs more often than the one before it.
func TestEachFunctionThatAJourneyRunsIsOnThePage(t *testing.T) {
	long.Only(t)
	document, err := os.ReadFile(house)
	if err != nil {
		t.Fatal(err)
	}
	files := repository(t)
	before := travel(t, files, 0)
	for i, title := range stages {
		after := travel(t, files, i+1)
		for _, place := range unlisted(string(document), title, before, after) {
			t.Error(place)
		}
		before = after
	}
}

// counted are the packages whose functions a journey names one by one; the others only answer.
var counted = []string{"dispatcher", "poller", "internal/store", "model"}

// travel returns how often the first journeys run each function.
func travel(t *testing.T, files []file, stage int) map[string]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	var packages []string
	for _, name := range counted {
		packages = append(packages, "github.com/refreshd/refreshd/"+name)
	}
	test := exec.Command("go", "test", "-count=1", "-run=^TestTravel$", "-covermode=count", "-coverpkg="+strings.Join(packages, ","), "-coverprofile="+profile, ".")
	test.Env = append(os.Environ(), fmt.Sprintf("%s=%d", stageVariable, stage))
	if out, err := test.CombinedOutput(); err != nil {
		t.Fatalf("travel: %v\n%s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	return runsOf(string(text), files)
}

// runsOf reads a coverage profile: lines such as "module/poller/round.go:28.83,31.16 4 1", the last number of which is a count. A
// function runs as often as its first block.
func runsOf(profile string, files []file) map[string]int {
	counts := map[string]int{}
	for scanner := bufio.NewScanner(strings.NewReader(profile)); scanner.Scan(); {
		place, numbers, _ := strings.Cut(scanner.Text(), " ")
		start, _, _ := strings.Cut(place, ",")
		fields := strings.Fields(numbers)
		if len(fields) == 2 {
			counts[strings.TrimPrefix(start, "github.com/refreshd/refreshd/")], _ = strconv.Atoi(fields[1])
		}
	}
	runs := map[string]int{}
	for _, f := range files {
		if f.syntax == nil || f.isTest() || !slices.Contains(counted, path.Dir(f.path)) {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				at := positions.Position(function.Body.Lbrace)
				name := f.syntax.Name.Name + "." + nameOf(function)
				runs[name] = counts[fmt.Sprintf("%s:%d.%d", f.path, at.Line, at.Column)]
			}
		}
	}
	return runs
}

// unlisted returns one line for each function that a journey runs and its table does not name, and the other way round.
func unlisted(document, title string, before, after map[string]int) (places []string) {
	named := map[string]bool{}
	for _, match := range functionName.FindAllStringSubmatch(section(document, title), -1) {
		named[match[1]] = true
	}
	helpers := section(document, "What only converts or formats")
	for _, name := range slices.Sorted(maps.Keys(after)) {
		ran := after[name] > before[name]
		listed := named[name] || strings.Contains(helpers, "`"+name+"`") || strings.HasPrefix(name, "store.Keys.") || strings.HasPrefix(name, "store.codec.")
		switch {
		case ran && !listed:
			places = append(places, title+": expected a row or a helper, as it runs "+name)
		case !ran && named[name]:
			places = append(places, title+": expected what it runs, found "+name)
		}
	}
	return places
}
