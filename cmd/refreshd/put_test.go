package main

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestASecondSaveChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.put(twoModels)
		before := server.Dump(t)
		expectContains(t, c.do("model", "put", "-"), "2 models: 0 created, 0 updated, 2 unchanged, 0 refused\n")
		equal(t, before, server.Dump(t))
		c.in = strings.Replace(twoModels, "feed.csv", "other.csv", 1)
		expectContains(t, c.do("model", "put", "-", "--verbose"), "updated    daily\n", "unchanged  once\n")
	})
}

func TestAFileCutOffInTheMiddleSavesNothing(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	for _, text := range []string{"uid: a\n---\nuid: \"b\n", `[{"uid":"a"},{"uid":"b"`} {
		c.in = text
		c.fail(exitFailed, "model", "put", "-")
		dump := server.Dump(t)
		failIf(t, len(dump) > 0, "expected nothing saved, found %v", dump)
	}
}

func TestJSONLinesAreSavedWhileTheyAreRead(t *testing.T) {
	c := at(t, testkit.Redis(t))
	in, send := io.Pipe()
	told, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"model", "put", "-", "--verbose", "--format", "jsonl"}, in, out, io.Discard, c.environ())
		_ = out.Close()
	}()
	for i := range operate.BatchSize {
		fmt.Fprintf(send, "{\"uid\":\"m%d\"}\n", i)
	}
	first := make([]byte, len("created    m0\n"))
	if _, err := io.ReadFull(told, first); err != nil || string(first) != "created    m0\n" {
		t.Fatalf("expected the first model saved while the input is open, found %q, %v", first, err)
	}
	go func() {
		fmt.Fprintln(send, `{"uid":"last"}`)
		_ = send.Close()
	}()
	rest, err := io.ReadAll(told)
	code := <-ended
	stopIf(t, code != exitDone || err != nil, "expected exit code 0, found %d, %v", code, err)
	expectContains(t, string(rest), "created    last\n", fmt.Sprintf("%d models: %[1]d created", operate.BatchSize+1))
}

func TestABadDocumentHarmsItselfOnlyAndTheRestIsSummedUp(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	policy := check.Got(policy.Parse(map[string]any{"timeout": "7m"}))(t)
	path := file(t, "models.yaml", "uid: a\npolicy: {timeout: 7m}\n---\nuid: b\nrrule: FREQ=NEVER\n---\nuid: c\npolicy: nightly\n"+
		"---\nuid: d\npolicy: "+policy.ContentName()+"\n---\nuid: [e]\n---\nuid: f\npayload:\n  x: 1\n  reply_to: 2\n")
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{nil, "6 models: 2 created, 0 updated, 0 unchanged, 4 refused\n"},
		{[]string{"--verbose"}, "unchanged  a\nunchanged  d\n6 models: 0 created, 0 updated, 2 unchanged, 4 refused\n"},
	} {
		code, stdout, stderr := c.run(append([]string{"model", "put", path}, test.flags...)...)
		failIf(t, code != exitFailed, "expected exit code 1, found %d", code)
		expectEqualText(t, test.want, stdout)
		expectContains(t, stderr, "models.yaml line 5: rrule FREQ: expected", "models.yaml line 13: uid: expected a text, found a list",
			`models.yaml line 8: policy: expected a policy, or the name of a stored one (default), found "nightly"`, "line 18: payload.reply_to: expected a name other than big_table_uid,")
	}
	_, stdout, _ := c.run("model", "put", path, "-o", "json")
	var results []string
	for _, told := range c.objects(stdout) {
		results = append(results, fmt.Sprint(told["uid"], " ", told["result"]))
	}
	if a, d := c.object("model", "get", "a"), c.object("model", "get", "d"); a["policy"] != d["policy"] {
		t.Errorf("expected one policy, found %v and %v", a["policy"], d["policy"])
	}
	equal(t, []string{"a unchanged", "b refused", "c refused", "d unchanged", " refused", "f refused"}, results)
}

// tight is a policy whose timeout is the interval of the rule that it is used with.
const tight = "policy: {timeout: 2h, retries: [0]}\n"

func TestASaveWarnsOnceOfEachScheduleAndPolicyInTheOutcomeOfTheFirst(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	path := file(t, "models.yaml", "uid: a\nrrule: FREQ=DAILY;INTERVAL=2\n---\nuid: b\nrrule: FREQ=DAILY;INTERVAL=2\n---\nuid: c\n"+
		"rrule: FREQ=DAILY;INTERVAL=2\ndtstart: 2026-01-01\n---\nuid: d\nrrule: FREQ=DAILY;INTERVAL=3\ndtstart: soon\n")
	_, stdout, stderr := c.run("model", "put", path, "-o", "json")
	told := make(map[string]any)
	for _, object := range c.objects(stdout) {
		told[object["uid"].(string)] = object["warnings"]
	}
	warning := path + " line 1: dtstart: is missing, and the rule depends on it: it counts from midnight of the day on which the model is created"
	equal(t, map[string]any{"a": []any{warning}, "b": nil, "c": nil, "d": nil}, told)
	expectContains(t, stderr, "warning: "+warning+" (2 models)\n", "models.yaml line 13: dtstart: expected a wall clock time")
	failIf(t, strings.Count(stderr, "warning: ") != 1, "expected one warning, found\n%s", stderr)
}

func TestARefusedOrUnchangedModelIsNotWarnedOf(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for _, text := range []string{
		"uid: a\nrrule: FREQ=DAILY;INTERVAL=2\npolicy: unknown\n", "uid: a b\nrrule: FREQ=DAILY;INTERVAL=2\n", "uid: a\ndtstart: 2026-01-01T00:00:00\n" + tight,
	} {
		c.in = text
		_, _, stderr := c.run("model", "put", "-")
		failIf(t, strings.Contains(stderr, "warning") || stderr == "", "%q: expected a refusal without a warning, found %q", text, stderr)
	}
	c.in = "uid: a\nrrule: FREQ=DAILY;INTERVAL=2\n"
	for i, want := range []bool{true, false} {
		_, _, stderr := c.run("model", "put", "-")
		failIf(t, strings.Contains(stderr, "warning") != want, "save %d: expected a warning: %v, found %q", i+1, want, stderr)
	}
}

// namedModels are of every kind: by the policy default, by a stored policy, and with one of their own.
const namedModels = twoModels + "---\nuid: named\nrrule: FREQ=DAILY\npolicy: nightly\n---\nuid: explicit\nrrule: FREQ=DAILY\npolicy: default\nlabels: {tenant: t1}\n"

func TestWhatIsShownOfAModelCanBeSavedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.policy("name: nightly\ntimeout: 2h\n")
		c.policy("name: default\nqueue_timeout: 5m\n") // which completes what leaves something out
		c.put(namedModels)
		for _, uid := range []string{"daily", "once", "named", "explicit"} {
			shown, before := c.do("model", "get", uid, "-o", "json"), c.object("model", "get", uid)
			c.in = shown
			expectContains(t, c.do("model", "put", "-", "--verbose"), "unchanged  "+uid+"\n")

			c.in = strings.Replace(shown, `"timezone": "`, `"timezone": "Asia/Tokyo", "was": "`, 1)
			expectContains(t, c.fail(exitFailed, "model", "put", "-"), "was: expected one of uid")

			c.do("model", "rm", uid) // and with the last model its own policy
			c.in = shown
			expectContains(t, c.do("model", "put", "-", "--verbose"), "created    "+uid+"\n")
			diff := cmp.Diff(before["policy_definition"], c.object("model", "get", uid)["policy_definition"])
			failIf(t, diff != "", "%s (-shown +saved):\n%s", uid, diff)
		}
		c.in = c.do("model", "ls", "-o", "json")
		expectContains(t, c.do("model", "put", "-"), "4 models: 0 created, 0 updated, 4 unchanged, 0 refused\n")
	})
}

func TestAnEditOfWhatIsShownIsSavedAndAHandWrittenDocumentMayNotSayWhatIsOnlyShown(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.put(twoModels)
	c.in = strings.Replace(c.do("model", "get", "daily", "-o", "json"), "feed.csv", "other.csv", 1)
	expectContains(t, c.do("model", "put", "-", "--verbose"), "updated    daily\n")
	c.in = strings.Replace(c.do("model", "get", "daily", "-o", "json"), `"timeout": "1h"`, `"timeout": "soon"`, 1)
	expectContains(t, c.fail(exitFailed, "model", "put", "-"), "policy_definition.timeout: expected a duration")
	want := ""
	c.in = ""
	for i, field := range definitions.Shown {
		c.in += "---\nuid: a\n" + field + ": x\n"
		want += fmt.Sprintf("refreshd: standard input line %d: %s: expected one of uid\n", 3*i+3, field)
	}
	told := regexp.MustCompile(`expected one of uid.*`).ReplaceAllString(c.fail(exitFailed, "model", "put", "-"), "expected one of uid")
	expectEqualText(t, want, told)
}

func TestPutKnowsEachFieldThatGetAndListShow(t *testing.T) {
	shown := append(fieldsOf(reflect.TypeFor[operate.SoleModel]()), fieldsOf(reflect.TypeFor[operate.ListedModel]())...)
	for _, field := range definitions.Shown {
		failIf(t, !slices.Contains(shown, field), "expected %s among what is shown, found it only among what put ignores", field)
	}
	for _, field := range shown {
		_, err := model.ParseDefinition(map[string]any{"uid": "a", field: nil})
		defines := err == nil || field == "uid"
		failIf(t, defines == slices.Contains(definitions.Shown, field), "%s: expected a field of the definition, or one that put ignores", field)
	}
}

// fieldsOf are the names of the fields of a struct in JSON.
func fieldsOf(of reflect.Type) (names []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			names = append(names, fieldsOf(field.Type)...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}

func TestASaveWarnsOnceOfEachScheduleAndPolicy(t *testing.T) {
	c := at(t, testkit.Redis(t)) // a whole batch can take miniredis longer than the five seconds that a call may take
	var text strings.Builder
	for i := range 2*operate.BatchSize + 1 {
		fmt.Fprintf(&text, "---\nuid: m%d\nrrule: FREQ=HOURLY;INTERVAL=2\n%s", i, tight)
	}
	text.WriteString("---\nuid: other\nrrule: FREQ=HOURLY;INTERVAL=1\n" + tight)
	_, _, stderr := c.run("model", "put", file(t, "models.yaml", text.String()))
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	stopIf(t, len(lines) != 2, "expected 2 warnings, found %d\n%s", len(lines), stderr)
	expectContains(t, lines[0], "warning: ", "models.yaml line 4: policy.timeout: 2h is not shorter than the interval of 2h: ",
		fmt.Sprintf(" (%d models)", 2*operate.BatchSize+1))
	expectContains(t, lines[1], fmt.Sprintf("models.yaml line %d: ", 4*(2*operate.BatchSize+2)), "policy.timeout: 2h is not shorter than the interval of 1h: ")
	failIf(t, strings.Contains(lines[1], " models)"), "expected no count of one model, found %s", lines[1])
}

func TestASaveOfManyModelsIsSummedUpAndEachIsNamedOnDemand(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.in = `[{"uid":"a"},{"uid":"b c"},{"uid":"d"}]`
	_, stdout, stderr := c.run("model", "put", "-")
	expectEqualText(t, "3 models: 2 created, 0 updated, 0 unchanged, 1 refused\n", stdout)
	expectContains(t, stderr, "line 1: uid: expected")
	_, stdout, _ = c.run("model", "put", "-", "--verbose")
	expectEqualText(t, "unchanged  a\nunchanged  d\n3 models: 0 created, 0 updated, 2 unchanged, 1 refused\n", stdout)
	_, stdout, _ = c.run("model", "put", "-", "-o", "json")
	failIf(t, len(c.objects(stdout)) != 3, "expected an object for each model, found %s", stdout)
}
