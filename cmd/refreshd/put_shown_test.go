package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// namedModels are of every kind: by the policy default, by a stored policy, and with one of their own.
const namedModels = twoModels + "---\nuid: named\nrrule: FREQ=DAILY\npolicy: nightly\n---\nuid: explicit\nrrule: FREQ=DAILY\npolicy: default\nlabels: {tenant: t1}\n"

func TestWhatIsShownOfAModelCanBeSavedAgain(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = "name: nightly\ntimeout: 2h\n"
		c.do("policy", "put", "-")
		c.in = "name: default\nqueue_timeout: 5m\n" // which completes what leaves something out
		c.do("policy", "put", "-")
		c.in = namedModels
		c.do("model", "put", "-")
		for _, uid := range []string{"daily", "once", "named", "explicit"} {
			shown, before := c.do("model", "get", uid, "-o", "json"), c.object("model", "get", uid)
			c.in = shown
			expectContains(t, c.do("model", "put", "-", "--verbose"), "unchanged  "+uid+"\n")

			c.in = strings.Replace(shown, `"timezone": "`, `"timezone": "Asia/Tokyo", "was": "`, 1)
			expectContains(t, c.fail(exitFailed, "model", "put", "-"), "was: expected one of uid")

			c.do("model", "rm", uid) // and with the last model its own policy
			c.in = shown
			expectContains(t, c.do("model", "put", "-", "--verbose"), "created    "+uid+"\n")
			if diff := cmp.Diff(before["policy_definition"], c.object("model", "get", uid)["policy_definition"]); diff != "" {
				t.Errorf("%s (-shown +saved):\n%s", uid, diff)
			}
		}
		c.in = c.do("model", "ls", "-o", "json")
		expectContains(t, c.do("model", "put", "-"), "4 models: 0 created, 0 updated, 4 unchanged, 0 refused\n")
	})
}

func TestAnEditOfWhatIsShownIsSaved(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.in = twoModels
	c.do("model", "put", "-")
	c.in = strings.Replace(c.do("model", "get", "daily", "-o", "json"), "feed.csv", "other.csv", 1)
	expectContains(t, c.do("model", "put", "-", "--verbose"), "updated    daily\n")
	c.in = strings.Replace(c.do("model", "get", "daily", "-o", "json"), `"timeout": "1h"`, `"timeout": "soon"`, 1)
	expectContains(t, c.fail(exitFailed, "model", "put", "-"), "policy_definition.timeout: expected a duration")
}

func TestAHandWrittenDocumentMayNotSayWhatIsOnlyShown(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for _, field := range definitions.Shown {
		c.in = "uid: a\n" + field + ": x\n"
		expectContains(t, c.fail(exitFailed, "model", "put", "-"), "line 2: "+field+": expected one of uid")
	}
}

func TestPutKnowsEachFieldThatGetAndListShow(t *testing.T) {
	shown := append(fieldsOf(reflect.TypeFor[operate.SoleModel]()), fieldsOf(reflect.TypeFor[operate.ListedModel]())...)
	for _, field := range definitions.Shown {
		if !slices.Contains(shown, field) {
			t.Errorf("expected %s among what is shown, found it only among what put ignores", field)
		}
	}
	for _, field := range shown {
		_, err := model.ParseDefinition(map[string]any{"uid": "a", field: nil})
		if defines := err == nil || field == "uid"; defines == slices.Contains(definitions.Shown, field) {
			t.Errorf("%s: expected a field of the definition, or one that put ignores", field)
		}
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
