package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit"
)

func TestASecondSaveChangesNothing(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = twoModels
		c.do("model", "put", "-")
		before := server.Dump(t)
		expectContains(t, c.do("model", "put", "-"), "2 models: 0 created, 0 updated, 2 unchanged, 0 refused\n")
		if diff := cmp.Diff(before, server.Dump(t)); diff != "" {
			t.Error(diff)
		}
		c.in = strings.Replace(twoModels, "feed.csv", "other.csv", 1)
		expectContains(t, c.do("model", "put", "-", "--verbose"), "updated    daily\n", "unchanged  once\n")
	})
}

func TestABadDocumentHarmsItselfOnly(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	path := file(t, "models.yaml", "uid: a\n---\nuid: b\nrrule: FREQ=NEVER\n---\nuid: c\npolicy: nightly\n---\nuid: d\n---\nuid: [e]\n")
	code, stdout, stderr := c.run("model", "put", path, "-o", "json")
	if code != exitFailed {
		t.Errorf("expected exit code 1, found %d", code)
	}
	var results []string
	for _, told := range c.objects(stdout) {
		results = append(results, fmt.Sprint(told["uid"], " ", told["result"]))
	}
	if diff := cmp.Diff([]string{"a created", "b refused", "c refused", "d created", " refused"}, results); diff != "" {
		t.Error(diff)
	}
	expectContains(t, stderr,
		"models.yaml line 4: rrule FREQ: expected",
		`models.yaml line 7: policy: expected a policy, or the name of a stored one (default), found "nightly"`,
		"models.yaml line 11: uid: expected a text, found a list")
}

func TestAPayloadFieldThatIsOursIsRefusedWithItsLine(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.in = "uid: a\npayload:\n  x: 1\n  reply_to: 2\n"
	expectContains(t, c.fail(exitFailed, "model", "put", "-"), "line 4: payload.reply_to: expected a name other than big_table_uid,")
}

func TestAFileCutOffInTheMiddleSavesNothing(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	for _, text := range []string{"uid: a\n---\nuid: \"b\n", `[{"uid":"a"},{"uid":"b"`} {
		c.in = text
		c.fail(exitFailed, "model", "put", "-")
		if dump := server.Dump(t); len(dump) > 0 {
			t.Errorf("expected nothing saved, found %v", dump)
		}
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
	if code := <-ended; code != exitDone || err != nil {
		t.Fatalf("expected exit code 0, found %d, %v", code, err)
	}
	expectContains(t, string(rest), "created    last\n", fmt.Sprintf("%d models: %[1]d created", operate.BatchSize+1))
}

func TestAPolicyMayBeUsedByItsNameInTheFileThatBringsIt(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	policy, err := policy.Parse(map[string]any{"timeout": "7m"})
	if err != nil {
		t.Fatal(err)
	}
	c.in = fmt.Sprintf("uid: a\npolicy: {timeout: 7m}\n---\nuid: b\npolicy: %s\n", policy.ContentName())
	c.do("model", "put", "-")
	if a, b := c.object("model", "get", "a"), c.object("model", "get", "b"); a["policy"] != b["policy"] {
		t.Errorf("expected one policy, found %v and %v", a["policy"], b["policy"])
	}
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
	if told := c.objects(stdout); len(told) != 3 {
		t.Errorf("expected an object for each model, found %s", stdout)
	}
}
