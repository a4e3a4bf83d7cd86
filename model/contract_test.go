package model

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// jsonNames are the names of the fields of a type in JSON.
func jsonNames(value any) (names []string) {
	kind := reflect.TypeOf(value)
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func TestTheContractNamesEachMessageCommandAndField(t *testing.T) {
	for heading, want := range map[string][]string{
		"## What a worker answers": {
			string(MessageSuccess), string(MessageFailure), string(MessageStatus), string(MessageStarted), string(MessagePostponed), string(MessageInterrupted),
			string(MessageReady),
		},
		"## What an application says": {
			string(CommandPut), string(CommandRun), string(CommandEnable), string(CommandDisable), string(CommandRemove), string(CommandAccept), string(CommandReject),
			string(CommandHold), string(CommandRelease), string(CommandRequeue), string(CommandOpen),
		},
		"### The definition":          definitionFields,
		"### Replies":                 append(jsonNames(reply{}), "command_id", "reply_to", "by"),
		"### An entry of the history": jsonNames(attemptEntry{}),
	} {
		t.Run(heading, func(t *testing.T) {
			equal(t, slices.Sorted(slices.Values(want)), check.FirstCells(t, "../docs/wire.md", heading))
		})
	}
}
