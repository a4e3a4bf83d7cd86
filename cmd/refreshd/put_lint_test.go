package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit"
)

// tight is a policy whose timeout is the interval of the rule that it is used with.
const tight = "policy: {timeout: 2h, retries: [0]}\n"

func TestASaveWarnsOnceOfEachScheduleAndPolicy(t *testing.T) {
	c := at(t, testkit.Redis(t)) // a whole batch can take miniredis longer than the five seconds that a call may take
	var text strings.Builder
	for i := range 2*operate.BatchSize + 1 {
		fmt.Fprintf(&text, "---\nuid: m%d\nrrule: FREQ=HOURLY;INTERVAL=2\n%s", i, tight)
	}
	text.WriteString("---\nuid: other\nrrule: FREQ=HOURLY;INTERVAL=1\n" + tight)
	_, _, stderr := c.run("model", "put", file(t, "models.yaml", text.String()))
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) != 2 {
		t.Fatalf("expected 2 warnings, found %d\n%s", len(lines), stderr)
	}
	expectContains(t, lines[0], "warning: ", "models.yaml line 4: policy.timeout: 2h is not shorter than the interval of 2h: ",
		fmt.Sprintf(" (%d models)", 2*operate.BatchSize+1))
	expectContains(t, lines[1], fmt.Sprintf("models.yaml line %d: ", 4*(2*operate.BatchSize+2)), "policy.timeout: 2h is not shorter than the interval of 1h: ")
	if strings.Contains(lines[1], " models)") {
		t.Errorf("expected no count of one model, found %s", lines[1])
	}
}

func TestAWarningStandsInTheOutcomeOfItsModel(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	path := file(t, "models.yaml", "uid: a\nrrule: FREQ=DAILY;INTERVAL=2\n---\nuid: b\nrrule: FREQ=DAILY;INTERVAL=2\n---\nuid: c\n"+
		"rrule: FREQ=DAILY;INTERVAL=2\ndtstart: 2026-01-01\n---\nuid: d\nrrule: FREQ=DAILY;INTERVAL=3\ndtstart: soon\n")
	_, stdout, stderr := c.run("model", "put", path, "-o", "json")
	told := make(map[string]any)
	for _, object := range c.objects(stdout) {
		told[object["uid"].(string)] = object["warnings"]
	}
	warning := path + " line 1: dtstart: is missing, and the rule depends on it: it counts from midnight of the day on which the model is created"
	if diff := cmp.Diff(map[string]any{"a": []any{warning}, "b": nil, "c": nil, "d": nil}, told); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	expectContains(t, stderr, "warning: "+warning+" (2 models)\n", "models.yaml line 13: dtstart: expected a wall clock time")
	if strings.Count(stderr, "warning: ") != 1 {
		t.Errorf("expected one warning, found\n%s", stderr)
	}
}

func TestARefusedOrUnchangedModelIsNotWarnedOf(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for _, text := range []string{
		"uid: a\nrrule: FREQ=DAILY;INTERVAL=2\npolicy: unknown\n", "uid: a b\nrrule: FREQ=DAILY;INTERVAL=2\n", "uid: a\ndtstart: 2026-01-01T00:00:00\n" + tight,
	} {
		c.in = text
		if _, _, stderr := c.run("model", "put", "-"); strings.Contains(stderr, "warning") || stderr == "" {
			t.Errorf("%q: expected a refusal without a warning, found %q", text, stderr)
		}
	}
	c.in = "uid: a\nrrule: FREQ=DAILY;INTERVAL=2\n"
	for i, want := range []bool{true, false} {
		if _, _, stderr := c.run("model", "put", "-"); strings.Contains(stderr, "warning") != want {
			t.Errorf("save %d: expected a warning: %v, found %q", i+1, want, stderr)
		}
	}
}
