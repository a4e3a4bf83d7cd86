package architecture

import (
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestThePageOfTheHouseNamesWhatExists(t *testing.T) {
	report(t, astray(document(t, "architecture.md"), repository(t), os.DirFS("../..")))
	report(t, astray(document(t, "../CONTRIBUTING.md"), repository(t), os.DirFS("../..")))
}

// The names of functions, scripts and rooms in a document.
var (
	functionName = regexp.MustCompile("`([a-z]+(?:\\.[A-Za-z]+){1,2})`")
	roomRow      = regexp.MustCompile("(?m)^\\| (`[a-z/]+`(?:, `[a-z/]+`)*) \\|")
	filePath     = regexp.MustCompile("`([a-z_]+/[a-z_/]+\\.(?:go|lua|md|sh))`")
	heading      = regexp.MustCompile(`(?m)^###? .*$`)
)

// astray returns one line for each name in the document that the sources do not have.
func astray(document string, files []file, tree fs.FS) (places []string) {
	names := namesOf(files)
	for _, match := range functionName.FindAllStringSubmatch(document, -1) {
		name := match[1]
		script, isScript := strings.CutSuffix(name, ".lua")
		switch {
		case strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "time."):
		case isScript:
			if _, err := fs.Stat(tree, "scripts/"+script+".lua"); err != nil {
				places = append(places, "expected a script, found "+name)
			}
		case !names[name]:
			places = append(places, "expected a name of the repository, found "+name)
		}
	}
	for _, match := range filePath.FindAllStringSubmatch(document, -1) {
		if _, err := fs.Stat(tree, match[1]); err != nil {
			places = append(places, "expected a file, found "+match[1])
		}
	}
	for _, row := range roomRow.FindAllStringSubmatch(document, -1) {
		for room := range strings.SplitSeq(row[1], ", ") {
			if info, err := fs.Stat(tree, strings.Trim(room, "`")); err != nil || !info.IsDir() {
				places = append(places, "expected a room, found "+room)
			}
		}
	}
	return places
}

// namesOf names all functions, methods, types, fields and values outside of tests, as "package.Function" and "package.Type.Method".
func namesOf(files []file) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		if f.syntax == nil || f.isTest() {
			continue
		}
		prefix := f.syntax.Name.Name + "."
		for _, function := range f.functions() {
			names[prefix+nameOf(function)] = true
		}
		f.inspect(func(n ast.Node) {
			switch s := n.(type) {
			case *ast.ValueSpec: // a document may speak of constants and variables
				for _, name := range s.Names {
					names[prefix+name.Name] = true
				}
			case *ast.TypeSpec:
				names[prefix+s.Name.Name] = true
				if structure, ok := s.Type.(*ast.StructType); ok {
					for _, field := range structure.Fields.List {
						for _, name := range field.Names {
							names[prefix+s.Name.Name+"."+name.Name] = true
						}
					}
				}
			}
		})
	}
	return names
}

func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	return receiverOf(function) + "." + function.Name.Name
}

// section is what stands below a heading, up to the next one.
func section(document, title string) string {
	_, below, _ := strings.Cut(document, "# "+title+"\n")
	if next := heading.FindStringIndex(below); next != nil {
		below = below[:next[0]]
	}
	return below
}

// stages are the journeys in the order in which TestTravel makes them, each with the function that it begins with.
var stages = [][2]string{{"A put", "poller.Poller.RunOnce"}, {"A due model", "dispatcher.Dispatcher.RunOnce"}, {"A failed result", "poller.Poller.RunOnce"}}

// stageVariable tells TestTravel how many of the journeys to make.
const stageVariable = "REFRESHD_TEST_STAGE"

// TestTravel makes the first journeys. It is run by the test below, which counts what they run.
func TestTravel(t *testing.T) {
	stage, err := strconv.Atoi(os.Getenv(stageVariable))
	if err != nil {
		t.Skip("run by TestAJourneyIsShort")
	}
	q := fixture.New(t, testkit.Miniredis(t))
	q.Redis.HSet(t.Context(), q.Store.Keys.Policies, "nightly", `{"name":"nightly","timeout":"10m","retries":["1m","5m"],"jitter":0.2}`)
	p := testkit.Got(poller.New(poller.RoomsOf(q.Store), poller.Config{}))(t)
	d := testkit.Got(dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{}))(t)
	dispatch := func() error { _, err := d.RunOnce(t.Context()); return err }
	poll := func() error { _, err := p.RunOnce(t.Context()); return err }
	const moment = 900 * time.Millisecond // less than it takes until a loop does again what it does now and then
	steps := []func() error{
		func() error {
			q.Clock.Turn(30*time.Minute + time.Second - moment) // the turn of a minute is none of the journey
			return errors.Join(dispatch(), poll())
		},
		func() error {
			q.Command(`{"type":"put","uid":"tbl_1","payload":{"input_url":"https://example.com/feed.csv"},"rrule":"FREQ=DAILY;BYHOUR=7;BYMINUTE=30;BYSECOND=1",` +
				`"timezone":"UTC","policy":"nightly"}`)
			return poll()
		},
		func() error {
			q.Clock.Turn(moment)
			return dispatch()
		},
		func() error {
			entry, _ := q.Take()
			q.Clock.Turn(moment)
			q.Say(fixture.Result("failure", entry.UID, entry.AttemptUID, `"reason":"HTTP 503"`))
			return poll()
		},
	}
	for _, step := range steps[:stage+1] {
		must(t, step())
	}
	got := q.Model("tbl_1")["refresh_why"]
	failIf(t, stage == len(stages) && !strings.HasPrefix(got, "retry 1 of 2"), "refresh_why %q, want a retry", got)
}

// TestAJourneyIsShort follows what each stage runs more often than the one before it, and compares that with the page.
func TestAJourneyIsShort(t *testing.T) {
	long.Only(t)
	page := document(t, "architecture.md")
	code, binary := readCode(t), filepath.Join(t.TempDir(), "travel.test")
	packages := module + strings.Join(counted, ","+module)
	out, err := exec.Command("go", "test", "-c", "-covermode=count", "-coverpkg="+packages, "-o="+binary, ".").CombinedOutput()
	stopIf(t, err != nil, "build: %v\n%s", err, out)
	before := travel(t, binary, 0)
	for i, stage := range stages {
		after := travel(t, binary, i+1)
		j := code.follow(stage[1], blocksSince(before, after))
		t.Logf("%s: %d stays in %d files:\n%s", stage[0], j.stays, len(j.files), strings.Join(j.path, "\n"))
		report(t, j.faults(page, stage[0]))
		before = after
	}
}

// travel returns the coverage profile of the first journeys.
func travel(t *testing.T, binary string, stage int) string {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	test := exec.Command(binary, "-test.run=^TestTravel$", "-test.coverprofile="+profile)
	test.Env = append(os.Environ(), fmt.Sprintf("%s=%d", stageVariable, stage))
	if out, err := test.CombinedOutput(); err != nil {
		t.Fatalf("travel: %v\n%s", err, out)
	}
	text := testkit.Got(os.ReadFile(profile))(t)
	return string(text)
}

// faults returns one line for each promise of the page that the journey breaks: a row "| A put | … | most stays | most files |", and functions that
// its section names in their order.
func (j journey) faults(document, title string) (places []string) {
	most := map[string]int{}
	_, row, _ := strings.Cut(document, "\n| "+title+" |")
	row, _, _ = strings.Cut(row, "\n")
	cells := strings.Split(strings.TrimRight(row, "| "), "|")
	for i, name := range []string{"files", "stays"} {
		most[name], _ = strconv.Atoi(strings.TrimSpace(cells[max(0, len(cells)-1-i)]))
	}
	if j.stays > most["stays"] || len(j.files) > most["files"] {
		places = append(places, fmt.Sprintf("%s: expected at most %d stays in %d files, found %d in %d", title, most["stays"], most["files"], j.stays, len(j.files)))
	}
	at := -1
	for _, match := range functionName.FindAllStringSubmatch(section(document, title), -1) {
		if strings.HasSuffix(match[1], ".lua") || strings.HasSuffix(match[1], ".go") {
			continue
		}
		next := slices.Index(j.path, match[1])
		if next <= at {
			places = append(places, title+": expected what the journey comes by, in this order, found "+match[1])
		}
		at = max(at, next)
	}
	return places
}
