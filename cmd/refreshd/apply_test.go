package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
)

// directory is one of documents that the test changes.
type directory struct {
	*console
	path string
}

func (d *directory) write(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.path, name)
	must(d.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(d.t, os.WriteFile(path, []byte(text), 0o600))
}

func (d *directory) expect(code int, want string, flags ...string) {
	d.t.Helper()
	got, stdout, stderr := d.run(append([]string{"apply", "-f", d.path, "--owner", "ann"}, flags...)...)
	diff := cmp.Diff(want, strings.ReplaceAll(stdout+stderr, d.path+"/", ""))
	failIf(d.t, got != code || diff != "", "expected exit code %d, found %d (-want +got):\n%s", code, got, diff)
}

const fleetDocuments = `
name: nightly
timeout: 2h
rrule: FREQ=DAILY;BYHOUR=2
---
uid: tbl_1
policy: nightly
payload: {input_url: "https://example.com/a", tries: 3}
labels: {tenant: t1}
`

func TestADirectoryIsPlannedAndThenApplied(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := &directory{at(t, server), t.TempDir()}
		d.write("fleet.yaml", fleetDocuments)
		d.write(".hidden.yaml", "no document")
		d.write("README.txt", "no document")
		d.write("more/fleet.json", `[{"uid":"tbl_2"},{"kind":"model","uid":"tbl_3","rrule":"FREQ=DAILY","policy":{"timeout":"1h"}}]`)
		d.do("queue", "create", "--parts", "2")
		empty := server.Dump(t)
		plan := "create   policy  nightly\ncreate   model   tbl_1\ncreate   model   tbl_2                             starts at once\ncreate   model   tbl_3\n"
		d.expect(exitDiffer, plan+"ann: 1 policy to create, 0 to change; 3 models to create, 0 to change, 0 to delete; 0 unchanged; 1 model starts at once\n", "--plan")
		equal(t, empty, server.Dump(t))
		d.expect(exitDone, plan+"ann: 1 policy created, 0 changed; 3 models created, 0 changed, 0 deleted; 0 unchanged; 1 model starts at once\n")
		applied := server.Dump(t)
		d.expect(exitDone, "ann: 0 policies to create, 0 to change; 0 models to create, 0 to change, 0 to delete; 4 unchanged\n", "--plan")
		d.expect(exitDone, "ann: 0 policies created, 0 changed; 0 models created, 0 changed, 0 deleted; 4 unchanged\n", "--prune")
		equal(t, applied, server.Dump(t))
		got := d.object("model", "get", "tbl_1")
		failIf(t, cmp.Diff(map[string]any{"owner": "ann", "tenant": "t1"}, got["labels"]) != "" || got["policy"] != "nightly", "found %v", got)

		d.write("fleet.yaml", strings.NewReplacer("2h", "3h", "/a", "/b", "t1", "t2").Replace(fleetDocuments))
		d.write("more/fleet.json", `[{"uid":"tbl_2"},{"kind":"model","uid":"tbl_3","rrule":"FREQ=HOURLY","timezone":"Europe/Berlin","policy":{"timeout":"2h"}}]`)
		changes := "change   policy  nightly                           timeout: 2h -> 3h\n" +
			"change   model   tbl_1                             labels.tenant: t1 -> t2; payload.input_url: https://example.com/a -> https://example.com/b\n" +
			"change   model   tbl_3                             rrule: FREQ=DAILY -> FREQ=HOURLY; timezone: - -> Europe/Berlin; policy.timeout: 1h -> 2h\n"
		d.expect(exitDiffer, changes+"ann: 0 policies to create, 1 to change; 0 models to create, 2 to change, 0 to delete; 1 unchanged\n", "--plan")
		_, told, _ := d.run("apply", "-f", d.path, "--owner", "ann", "--plan", "-o", "json")
		steps := d.objects(told)
		if len(steps) != 4 || cmp.Diff(map[string]any{"field": "timeout", "old": "2h", "new": "3h"}, steps[0]["changes"].([]any)[0]) != "" || steps[3]["kind"] != "summary" {
			t.Errorf("found %v", steps)
		}
		d.expect(exitDone, changes+"ann: 0 policies created, 1 changed; 0 models created, 2 changed, 0 deleted; 1 unchanged\n")
		d.expect(exitDone, "ann: 0 policies to create, 0 to change; 0 models to create, 0 to change, 0 to delete; 4 unchanged\n", "--plan")
	})
}

func TestWhatTheDirectoryHasNoLongerIsDeletedOnlyIfAskedForAndNeverTooMuch(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := &directory{at(t, server), t.TempDir()}
		d.write("fleet.yaml", "- {uid: a}\n- {uid: b}\n- {uid: c}\n- {uid: d}\n")
		d.put("uid: mine\nlabels: {owner: bob}\n---\nuid: nobodys\n")
		d.do("apply", "-f", d.path, "--owner", "ann")
		d.write("fleet.yaml", "- {uid: a}\n- {uid: b}\n")
		d.expect(exitDone, "ann: 0 policies to create, 0 to change; 0 models to create, 0 to change, 0 to delete; 2 unchanged; 2 models are not in the directory: --prune deletes them\n", "--plan")
		before := server.Dump(t)
		deletes := "delete   model   c\ndelete   model   d\n"
		tooMuch := deletes + "ann: 0 policies to create, 0 to change; 0 models to create, 0 to change, 2 to delete; 2 unchanged; 1 refused, so nothing is applied\n" +
			"refreshd: max-delete: expected at most 1 models to delete, which is 5% of the 4 of ann, found 2\n"
		d.expect(exitFailed, tooMuch, "--prune")
		d.expect(exitFailed, tooMuch, "--prune", "--plan")
		equal(t, before, server.Dump(t))
		d.expect(exitDiffer, deletes+"ann: 0 policies to create, 0 to change; 0 models to create, 0 to change, 2 to delete; 2 unchanged\n", "--prune", "--plan", "--max-delete", "2")
		d.expect(exitDone, deletes+"ann: 0 policies created, 0 changed; 0 models created, 0 changed, 2 deleted; 2 unchanged\n", "--prune", "--max-delete", "50%")
		left := d.objects(d.do("model", "ls", "-o", "json"))
		failIf(t, len(left) != 4, "expected a, b and those of others left, found %v", left)
	})
}

func TestWhatBelongsToOthersIsTakenOverOnlyIfAskedFor(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := &directory{at(t, server), t.TempDir()}
		d.put("uid: bobs\nlabels: {owner: bob}\n---\nuid: nobodys\n")
		d.write("fleet.yaml", "- {uid: bobs}\n- {uid: new}\n- {uid: nobodys}\n")
		before := server.Dump(t)
		d.expect(exitFailed, "create   model   new                               starts at once\n"+
			"ann: 0 policies to create, 0 to change; 1 model to create, 0 to change, 0 to delete; 0 unchanged; 2 refused, so nothing is applied; 1 model starts at once\n"+
			"refreshd: fleet.yaml line 1: uid: expected a model of ann, or --adopt, found one of bob\n"+
			"refreshd: fleet.yaml line 3: uid: expected a model of ann, or --adopt, found one of nobody\n")
		equal(t, before, server.Dump(t))
		d.expect(exitDone, "change   model   bobs                              labels.owner: bob -> ann\n"+
			"create   model   new                               starts at once\n"+
			"change   model   nobodys                           labels.owner: - -> ann\n"+
			"ann: 0 policies created, 0 changed; 1 model created, 2 changed, 0 deleted; 0 unchanged; 1 model starts at once\n", "--adopt")
	})
}

func TestADocumentThatIsRefusedIsNamedAndNothingIsApplied(t *testing.T) {
	server := testkit.Miniredis(t)
	d := &directory{at(t, server), t.TempDir()}
	for text, want := range map[string]string{
		"uid: a\nrrule: FREQ=NEVER\n":    "x.yaml line 4: rrule FREQ: expected",
		"uid: a\n---\nuid: a\n":          "x.yaml line 5: expected each model and each policy once, found model a again, as at x.yaml line 3",
		"uid: a\nrefresh: now\n":         `x.yaml line 4: refresh: expected planned or nothing, as a directory is applied again and again, found "now"`,
		"uid: a\nlabels: {owner: bob}\n": `x.yaml line 4: labels.owner: expected ann or nothing, found "bob"`,
		"uid: a\nlabels: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1}\n": "x.yaml line 4: labels: expected at most 7 beside owner, found 8",
		"uid: a\nstate: {}\n":      "x.yaml line 4: state: expected one of uid,",
		"uid: a\npolicy: none\n":   "x.yaml line 4: policy: expected a policy, or the name of a stored one (default)",
		"kind: policy\nuid: a\n":   `x.yaml line 3: kind: expected model, as the other fields say, found "policy"`,
		"timeout: 1h\n":            "x.yaml line 3: name: expected 1-200 letters",
		"name: p\ntimeout: soon\n": "x.yaml line 4: timeout: expected a duration",
		"just words\n":             "x.yaml line 3: expected a model, which has a uid, or a policy, found",
	} {
		d.write("x.yaml", "uid: good\n---\n"+text)
		told := strings.ReplaceAll(d.fail(exitFailed, "apply", "-f", d.path, "--owner", "ann"), d.path+"/", "")
		failIf(t, !strings.Contains(told, want), "%s: expected %s, found %s", text, want, told)
		dump := server.Dump(t)
		failIf(t, len(dump) > 0, "%s: expected nothing applied, found %v", text, dump)
	}
}

func TestWhatAnExportSaysIsADirectory(t *testing.T) {
	d := &directory{at(t, testkit.Miniredis(t)), t.TempDir()}
	d.policy("name: nightly\ntimeout: 2h\n")
	d.policy("name: default\nqueue_timeout: 5m\n") // which would complete nightly, were it not whole
	d.put(namedModels)
	d.write("fleet.jsonl", d.do("model", "export"))
	policies := ""
	for line := range strings.Lines(d.do("model", "export", "--state")) {
		if strings.HasPrefix(line, `{"kind":"policy"`) {
			policies += line
		}
	}
	d.write("policies.jsonl", policies)
	expectContains(t, d.do("apply", "-f", d.path, "--owner", "ann", "--adopt"), "ann: 0 policies created, 0 changed; 0 models created, 4 changed, 0 deleted; 2 unchanged\n")
	d.expect(exitDone, "ann: 0 policies to create, 0 to change; 0 models to create, 0 to change, 0 to delete; 6 unchanged\n", "--plan", "--prune")
}
