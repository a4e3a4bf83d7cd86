package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDemoFailsWhenTheAudienceDidNotSeeEverything(t *testing.T) {
	t.Parallel()
	c := &console{t: t}
	if complaint := c.fail(exitFailed, "demo", "--for", "1ms"); !strings.Contains(complaint, "before everything was seen: 0 of") {
		t.Errorf("complaint is %q, want it to tell how much was seen", complaint)
	}
}

func TestDemoNeverTouchesAnotherRedis(t *testing.T) {
	t.Parallel()
	c := &console{t: t, env: map[string]string{"REDIS_URL": "redis://127.0.0.1:1"}}
	_, stdout, _ := c.run("demo", "--for", "1ms", "--queue", "other", "-o", "json")
	var first struct {
		Commands []string `json:"commands"`
	}
	line, _, _ := strings.Cut(stdout, "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil {
		t.Fatalf("first line %q: %v", line, err)
	}
	if len(first.Commands) == 0 || !strings.Contains(first.Commands[0], "other:model:") {
		t.Errorf("commands are %q, want those of the queue other", first.Commands)
	}
}
