package examples

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// theRecipes are the applications whose rows are models. testdata/recipes has a project around each.
var theRecipes = []struct{ name, language, project string }{
	{"django", "python with Django", "project.py"},
	{"express", "node with Express", "project.js"},
	{"laravel", "php with Laravel", "project.php"},
	{"rails", "ruby with Rails", "project.rb"},
}

// TestTheModelsOfAnApplicationFollowItsCommittedRows saves, loses, reconciles, shows and deletes rows in each framework, with the rights of the Redis
// user for applications, and plays the worker. The long run plays all of them.
func TestTheModelsOfAnApplicationFollowItsCommittedRows(t *testing.T) {
	for _, one := range theRecipes[:long.Or(1, len(theRecipes))] {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			r := newRecipe(t, one.name, one.language, one.project)
			r.do("create")
			first := "feed_" + r.do("save", "Hats & <b>shoes</b>", "https://example.com/hats.csv")
			r.expectModels("after the commit", "hats.csv")

			r.do("rollback", "Rolled back", "https://example.com/back.csv")
			r.diesAt("die", "Gloves", "https://example.com/gloves.csv")
			r.savesWithoutRedis("Scarves", "https://example.com/scarves.csv")
			r.expectModels("after a rollback, a death behind the commit, and an outage", "hats.csv")
			check.Eventually(t, first+" is queued", func() bool { return r.Attempt(first) != "" })
			before := r.Model(first)["rev"]
			r.do("reconcile")
			r.expectModels("reconciled", "gloves.csv", "hats.csv", "scarves.csv")
			failIf(t, r.Model(first)["rev"] != before, "want a model that nobody changed left as it was, got revision %s after %s", r.Model(first)["rev"], before)

			r.expectPage("queued", "Hats &amp; &lt;b&gt;shoes&lt;/b&gt;", "never")
			attempt := r.work(first)
			r.expectPage("processing", "half of &lt;b&gt;it&lt;/b&gt;", "50 %", "never")
			r.Say(fixture.Result("success", first, attempt))
			r.AwaitEvent("success", 1)
			page := r.expectPage("scheduled")
			failIf(t, strings.Count(page, "never") != 2, "want the time of the last success of one of three feeds, got\n%s", page)

			r.do("delete", strings.TrimPrefix(first, "feed_"))
			r.expectModels("after a row was deleted", "gloves.csv", "scarves.csv")
			r.do("lose")
			r.expectModels("after all rows were deleted by a statement", "gloves.csv", "scarves.csv")
			r.do("reconcile")
			r.expectModels("reconciled again")
			r.users.ExpectNoRefusal(t)
		})
	}
}

// TestTheWireOfTheRailsRecipeReachesAllPartsOfAQueue reads between commands, while no dispatcher starts anything.
func TestTheWireOfTheRailsRecipeReachesAllPartsOfAQueue(t *testing.T) {
	for parts, start := range map[int]func(testing.TB, string) *fixture.Users{1: fixture.WithUsers, 3: fixture.WithUsersOfParts} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			t.Parallel()
			program, environ := testkit.Interpreter(t, "ruby with Rails")
			users := start(t, store.DefaultQueue)
			if parts > 1 {
				must(t, store.Create(t.Context(), fixture.Connect(t, users.Server.URL), store.Config{Queue: store.DefaultQueue}, parts))
			}
			for _, part := range fixture.Open(t, users.URL(t, acl.Poller), store.Config{Queue: store.DefaultQueue}).Parts {
				check.Run(t, check.Got(poller.New(poller.RoomsOf(part), poller.Config{}))(t).Run)
			}
			r := &recipe{t: t, command: []string{program, filepath.Join("testdata", "recipes", "wire.rb")}}
			r.environ = append(environ, "REDIS_URL="+users.URL(t, acl.Application), "RECIPE="+filepath.Join(root, "examples", "rails"))
			want := "300 refused x 150 scheduled nil applied due applied nil Refreshd::Refused"
			got := strings.Join(strings.FieldsFunc(r.do(), func(c rune) bool { return c == '\n' }), " ")
			failIf(t, got != want, "want %s, got %s", want, got)
			users.ExpectNoRefusal(t)
		})
	}
}

// recipe is an application with its database, a queue with its daemons, and the rights of an application there.
type recipe struct {
	*fixture.Queue
	t       *testing.T
	users   *fixture.Users
	command []string
	environ []string
}

func newRecipe(t *testing.T, name, language, project string) *recipe {
	t.Helper()
	program, environ := testkit.Interpreter(t, language)
	here := check.Got(filepath.Abs(root))(t)
	projects, clients := filepath.Join(here, "test", "examples", "testdata", "recipes"), filepath.Join(here, "clients")
	users := fixture.WithUsers(t, store.DefaultQueue)
	r := &recipe{Queue: fixture.Live(t, users.Server), t: t, users: users, command: []string{program, filepath.Join(projects, project)}}
	r.environ = append(environ, "REDIS_URL="+users.URL(t, acl.Application), "RECIPE="+filepath.Join(here, "examples", name), "CLIENTS="+clients,
		"DATABASE="+filepath.Join(t.TempDir(), "rows.sqlite"), "PYTHONPATH="+filepath.Join(clients, "python"), "PYTHONDONTWRITEBYTECODE=1",
		"NODE_PATH="+strings.Join([]string{filepath.Join(projects, "node"), filepath.Join(clients, "node"), "/usr/share/nodejs"}, ":"))
	if name == "express" {
		testkit.RequireProgram(t, "psql", "postgresql-client")
		r.environ = append(r.environ, "PGHOST=127.0.0.1", "PGPORT="+portOf(startPostgres(t)), "PGUSER=postgres")
	}
	d := check.Got(dispatcher.New(dispatcher.RoomsOf(r.Store), dispatcher.Config{}))(t)
	p := check.Got(poller.New(poller.RoomsOf(r.Store), poller.Config{}))(t)
	check.Run(t, d.Run, p.Run)
	return r
}

// run runs an action of the project in a process of its own.
func (r *recipe) run(args []string) (stdout, stderr string, err error) {
	var told bytes.Buffer
	command := exec.CommandContext(r.t.Context(), r.command[0], slices.Concat(r.command[1:], args)...)
	command.Env, command.Stderr = r.environ, &told
	output, err := command.Output()
	return strings.TrimSpace(string(output)), told.String(), err
}

// do runs an action that must end well, without a word about an error.
func (r *recipe) do(args ...string) string {
	r.t.Helper()
	stdout, stderr, err := r.run(args)
	stopIf(r.t, err != nil || stderr != "", "%s: %v\n%s\n%s", args, err, stdout, stderr)
	return stdout
}

// diesAt runs an action whose process ends behind the commit, before the model is saved.
func (r *recipe) diesAt(args ...string) {
	r.t.Helper()
	_, stderr, err := r.run(args)
	exit, dead := errors.AsType[*exec.ExitError](err)
	stopIf(r.t, !dead || exit.ExitCode() != 3, "%s: want exit code 3, got %v\n%s", args, err, stderr)
}

// savesWithoutRedis saves a row while Redis is away: that is told, and no failure.
func (r *recipe) savesWithoutRedis(name, url string) {
	r.t.Helper()
	environ := r.environ
	r.environ = append(slices.Clip(environ), "REDIS_URL=redis://127.0.0.1:1")
	_, stderr, err := r.run([]string{"save", name, url})
	r.environ = environ
	stopIf(r.t, err != nil || stderr == "", "want a row saved, and a word about its model, got %v\n%s", err, stderr)
}

// expectModels compares the names of the files that the models load.
func (r *recipe) expectModels(when string, want ...string) {
	r.t.Helper()
	found := map[string]bool{}
	for _, uid := range check.Got(r.Redis.SMembers(r.t.Context(), r.Store.Keys.Label("kind=feed")).Result())(r.t) {
		payload := check.Got(r.Redis.Get(r.t.Context(), r.Store.Keys.Payload(uid)).Result())(r.t)
		found[strings.TrimSuffix(strings.TrimPrefix(payload, `{"input_url":"https://example.com/`), `"}`)] = true
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		r.t.Fatalf("%s: want models of %v, got %v", when, want, got)
	}
}

// work takes the attempt of a model, and says how far it is.
func (r *recipe) work(uid string) (attemptUID string) {
	r.t.Helper()
	check.Eventually(r.t, uid+" is refreshed", func() bool {
		entry, _ := r.Take()
		attemptUID = entry.AttemptUID
		return entry.UID == uid
	})
	r.Say(fixture.Result("started", uid, attemptUID),
		fixture.Result("user_friendly_status", uid, attemptUID, `"status":"half of <b>it</b>"`, `"progress":50`))
	check.Eventually(r.t, "its progress is known", func() bool { return r.Model(uid)["progress"] == "50" })
	return attemptUID
}

func (r *recipe) expectPage(shows ...string) string {
	r.t.Helper()
	page := r.do("page")
	for _, text := range shows {
		failIf(r.t, !strings.Contains(page, text), "want a page with %q, got\n%s", text, page)
	}
	return page
}
