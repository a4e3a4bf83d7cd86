package operate

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// inputs read files from a table, and know one queue.
func inputs(o Operator, files map[string]string) Inputs {
	return Inputs{
		Open: func(path string) (string, io.ReadCloser, error) {
			text, is := files[path]
			if !is {
				return path, nil, os.ErrNotExist
			}
			return path, io.NopCloser(strings.NewReader(text)), nil
		},
		Connect: func(_ context.Context, do func(Operator) error) error { return do(o) },
		Known:   true,
		Note:    func(string) {},
	}
}

func parted(t *testing.T) *store.Queue {
	t.Helper()
	return fixture.Parted(t, fixture.NewBench(t, testkit.Miniredis(t)).Clients)
}

// putAll stores the policies of a file, or plans to, and returns what became of each.
func putAll(t *testing.T, in Inputs, from, name string, plan bool) (results []string) {
	t.Helper()
	must(t, in.PutPolicies(t.Context(), from, name, plan, func(r PolicyResult) error {
		results = append(results, r.Name+" "+r.Result)
		return nil
	}))
	return results
}

func TestAPolicyIsCreatedUpdatedAndLeftUnchangedInAllParts(t *testing.T) {
	queue := parted(t)
	o := Operator{Queue: queue}
	in := inputs(o, map[string]string{
		"two": `[{"name":"a","timeout":"5m"},{"name":"b","timeout":"5m"}]`, "a": `{"name":"a","timeout":"6m"}`, "mine": `{"timeout":"7m"}`, "none": "[]",
	})
	for _, step := range []struct {
		from, name string
		plan       bool
		want       []string
	}{
		{"two", "", true, []string{"a planned", "b planned"}},
		{"two", "", false, []string{"a created", "b created"}},
		{"two", "", false, []string{"a unchanged", "b unchanged"}},
		{"a", "", false, []string{"a updated"}},
		{"mine", "c", false, []string{"c created"}},
	} {
		if got := putAll(t, in, step.from, step.name, step.plan); !cmp.Equal(got, step.want) {
			t.Errorf("put %s %s: got %v, want %v", step.from, step.name, got, step.want)
		}
	}
	for i, part := range queue.Parts {
		found := check.Got(part.Policies(t.Context(), []string{"a", "b", "c"}))(t)
		got := fmt.Sprint(found["a"].Timeout, found["b"].Timeout, found["c"].Timeout)
		if want := "6m0s 5m0s 7m0s"; got != want {
			t.Errorf("part %d: got %s, want %s", i, got, want)
		}
	}
	must(t, queue.Parts[1].Fleet().PutPolicy(t.Context(), fixture.Policy(t, `{"name":"a","timeout":"9m"}`)))
	if got, want := putAll(t, in, "a", "", false), []string{"a updated"}; !cmp.Equal(got, want) {
		t.Errorf("in one part it differs: got %v, want %v", got, want)
	}
	for from, name := range map[string]string{"two": "c", "none": "", "nowhere": "", "mine": ""} {
		err := in.PutPolicies(t.Context(), from, name, false, func(r PolicyResult) error { return fmt.Errorf("put %s", r.Name) })
		if err == nil || strings.Contains(err.Error(), "put ") {
			t.Errorf("%s as %q: got %v, want it refused", from, name, err)
		}
	}
}

// saveWith saves a model with these fields.
func saveWith(t *testing.T, queue *store.Queue, uid string, fields map[string]any) {
	t.Helper()
	fields["uid"] = uid
	d := check.Got(model.ParseDefinition(fields))(t)
	must(t, Execute(t.Context(), queue, []*Request{{Command: model.Command{Type: model.CommandPut, UID: uid, Definition: d}}}))
}

// usersOfP saves five models of a policy that plans at 6 and 18, in each state that a change of it meets, at six o'clock, and one of another policy.
func usersOfP(t *testing.T, queue *store.Queue) {
	t.Helper()
	must(t, queue.Fleet().PutPolicy(t.Context(), fixture.Policy(t, `{"name":"p","rrule":"0 6,18 * * *","timeout":"1h"}`)))
	for uid, does := range map[string]string{"waits": "", "runs": "run", "stopped": "disable", "urgent": "due", "succeeded": "succeed"} {
		b := fixture.OnPart(t, queue.Of(uid))
		saveWith(t, queue, uid, map[string]any{"policy": "p", "refresh": "planned"})
		switch does {
		case "run", "succeed":
			b.MustApply(b.Hand(uid, "a1"))
			if does == "succeed" {
				record := b.One(uid)
				b.MustApply(record.Decide(record.Succeed(b.Clock(), nil), b.Clock()))
			}
		case "disable":
			must(t, Execute(t.Context(), queue, []*Request{ask("disable", uid)}))
		case "due":
			must(t, Execute(t.Context(), queue, []*Request{ask("run", uid)}))
		}
	}
	must(t, Execute(t.Context(), queue, []*Request{put(t, "other", 1)}))
}

func TestThePlanOfAPolicyCountsTheModelsThatItChanges(t *testing.T) {
	queue := parted(t)
	usersOfP(t, queue)
	in := inputs(Operator{Queue: queue}, map[string]string{
		"alike": `{"name":"p","rrule":"0 6,18 * * *","timeout":"1h","failing_from":3}`, "sooner": `{"name":"p","rrule":"0 7 * * *","timeout":"1h"}`,
		"longer": `{"name":"p","rrule":"0 6,18 * * *","timeout":"2h"}`,
	})
	counts := func(i *Impact) []int {
		return []int{i.Models, i.Running, i.Disabled, i.DueAtOnce, i.Changed, i.Replanned}
	}
	for from, want := range map[string][]int{"alike": {5, 1, 1, 1, 0, 0}, "longer": {5, 1, 1, 1, 5, 0}, "sooner": {5, 1, 1, 1, 5, 2}} {
		must(t, in.PutPolicies(t.Context(), from, "", true, func(r PolicyResult) error {
			if got := counts(r.Plan); !cmp.Equal(got, want) {
				t.Errorf("%s: got %v (models, running, disabled, due, changed, replanned), want %v", from, got, want)
			}
			if got, want := r.Plan.FirstStarts, []string{"2026-11-21T07:00:00.000Z"}; from == "sooner" && !cmp.Equal(got, want) {
				t.Errorf("first starts: got %v, want %v", got, want)
			}
			return nil
		}))
		change := check.Got(in.ComparePolicies(t.Context(), "p", from))(t)
		if got := counts(change.Plan); !cmp.Equal(got, want) || len(change.Differences) != 1 {
			t.Errorf("compared with %s: got %v and %v, want %v and one difference", from, got, change.Differences, want)
		}
		change = check.Got(in.ComparePolicies(t.Context(), from, "p"))(t)
		if change.Plan != nil || len(change.Differences) != 1 {
			t.Errorf("%s compared with the stored one: got the plan %v and %v, want no plan and one difference", from, change.Plan, change.Differences)
		}
	}
}

func TestAPolicyThatIsUsedIsRemovedByForceAlone(t *testing.T) {
	queue := parted(t)
	usersOfP(t, queue)
	must(t, queue.Fleet().PutPolicy(t.Context(), fixture.Policy(t, `{"name":"unused"}`)))
	o := Operator{Queue: queue}
	for _, step := range []struct {
		name  string
		force bool
		want  string // in the error; "": removed
	}{{"p", false, "found 5"}, {"nobody", false, "none of that name"}, {"unused", false, ""}, {"unused", false, "none of that name"}, {"p", true, ""}} {
		result, err := o.RemovePolicy(t.Context(), step.name, step.force)
		if step.want == "" && (err != nil || result.Result != ResultRemoved || result.Name != step.name) {
			t.Errorf("%s: got %+v, %v, want it removed", step.name, result, err)
		}
		if step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%s: got %v, want a refusal that says %s", step.name, err, step.want)
		}
	}
	if left := check.Got(o.Policies(t.Context()))(t); len(left) != 1 || left[0].Name != policy.DefaultName {
		t.Errorf("got %v left, want the default alone", left)
	}
}

func TestAStoredPolicyThatCannotBeReadIsListedWithoutItsFields(t *testing.T) {
	queue := parted(t)
	must(t, queue.Fleet().PutPolicy(t.Context(), fixture.Policy(t, `{"name":"good","timeout":"5m"}`)))
	must(t, queue.Parts[0].Clients.Write.HSet(t.Context(), queue.Parts[0].Keys.Policies, "bad", "{").Err())
	var got []string
	for _, p := range check.Got(Operator{Queue: queue}.Policies(t.Context()))(t) {
		text := "none"
		if p.Policy != nil {
			text = p.Policy.Name + " " + p.Policy.Timeout.String()
		}
		got = append(got, fmt.Sprint(p.Name, " ", p.Readable, " ", text))
	}
	if want := []string{"bad false none", "default true default 10m0s", "good true good 5m0s"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNumbersOfASampleOfModelsSayAtLeast(t *testing.T) {
	counted := Impact{Models: 326, Changed: 3, DueAtOnce: 5, Running: 2, Disabled: 1, Replanned: 3, FirstStarts: []string{"2026-11-21T07:00:00.000Z"}}
	for want, change := range map[string]func(*Impact){
		"326 models use it, 3 would decide otherwise. Due at once: 5. Running: 2. Disabled: 1. Planned anew: 3, first at 2026-11-21 07:00:00 UTC. The others decide at their next refresh.": func(*Impact) {},
		"The numbers are of a sample, the first 400 models of the queue. At least 326 models use it, at least 3 would decide otherwise. Due at once: at least 5. Running: at least 2. " +
			"Disabled: at least 1. Planned anew: at least 3, first at 2026-11-21 07:00:00 UTC. The others decide at their next refresh.": func(i *Impact) { i.looked = 400 },
		"The numbers are of a sample, the first 400 models of the queue. At least 326 models use it, at least 3 would decide otherwise. Due at once: at least 5. Running: at least 2. " +
			"Disabled: at least 1. None of these is planned anew. The others decide at their next refresh.": func(i *Impact) { i.looked, i.Replanned = 400, 0 },
	} {
		is := counted
		change(&is)
		if got := is.String(); got != want {
			t.Errorf("expected %q, found %q", want, got)
		}
	}
}
