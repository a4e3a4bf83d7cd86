package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

const wirePage = "../../docs/wire.md"

// variables are how the contract calls the part of a key that varies, by the method that builds the key.
var variables = map[string]string{
	"ParkedBy": "GATE", "Limit": "KEY", "Rate": "KEY", "Circuit": "KEY", "Label": "NAME=VALUE", "Bulk": "ID", "Recipients": "CHANNEL", "Notices": "RECIPIENT", "Summary": "RECIPIENT",
	"Told": "NAME", "Error": "<id>", "Claimed": "<owner>", "Taken": "<owner>", "Reply": "<name>",
}

func TestTheContractNamesEachKeyAndEachFieldOfAModel(t *testing.T) {
	keys := allKeys(newKeys("bigtables"), func(method string) string { return cmp.Or(variables[method], "<uid>") })
	lists := []string{keys["Input"], keys["Output"], keys["Control"]}
	want := slices.Concat(slices.Sorted(maps.Values(keys)), fieldNames, []string{fieldRev, labelPrefix + "NAME"})
	got := append(check.FirstCells(t, wirePage, "## Reading the state"), lists...)
	slices.Sort(want)
	slices.Sort(got)
	expectEqual(t, "keys and fields", want, got)
}

func TestTheContractNamesEachFieldOfTheJournalEachCounterAndEachSetting(t *testing.T) {
	var notes []string
	c := codec{set: func(name, _ string) { notes = append(notes, name) }, absent: true}
	c.notes(new(model.JournalEntry))
	slices.Sort(notes)
	expectEqual(t, "fields of the journal", notes, check.FirstCells(t, wirePage, "### An entry of the journal"))

	wanted := map[string][]string{
		"## What becomes of a message": slices.Concat(model.Refusals, model.Particulars),
		"## Reading the state":         {settingLayout, settingParts, settingModelName, settingAttemptName, settingPayload, settingNewError},
	}
	for _, event := range model.Events {
		wanted["## What becomes of a message"] = append(wanted["## What becomes of a message"], string(event))
	}
	for heading, names := range wanted {
		section := check.Section(t, wirePage, heading)
		for _, name := range names {
			if !strings.Contains(section, "`"+name+"`") {
				t.Errorf("%s: expected `%s` below %q", wirePage, name, heading)
			}
		}
	}
}
