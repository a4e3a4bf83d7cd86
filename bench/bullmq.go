package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// enterBullMQ installs BullMQ beside its script and tells its version.
func enterBullMQ(ctx context.Context, dir string) (run, string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, "", fmt.Errorf("%s is not installed", program)
		}
	}
	for _, name := range []string{"bullmq.mjs", "package.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, "", err
		}
		if err := os.WriteFile(dir+"/"+name, text, 0o600); err != nil {
			return nil, "", err
		}
	}
	install := exec.CommandContext(ctx, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent")
	install.Dir = dir
	if output, err := install.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("npm install: %w: %s", err, bytes.TrimSpace(output))
	}
	var installed struct {
		Version string `json:"version"`
	}
	text, err := os.ReadFile(dir + "/node_modules/bullmq/package.json")
	if err == nil {
		err = json.Unmarshal(text, &installed)
	}
	return func(ctx context.Context, s *server, n int) (result, error) { return bullmqCycles(ctx, s, dir, n) }, installed.Version, err
}

// bullmqCycles runs the script twice: to add the jobs, and then, measured, to do them.
func bullmqCycles(ctx context.Context, s *server, dir string, n int) (result, error) {
	script := func(verb string) ([]byte, error) {
		command := exec.CommandContext(ctx, "node", "bullmq.mjs", verb, s.addr, strconv.Itoa(n))
		command.Dir, command.Stderr = dir, os.Stderr
		return command.Output()
	}
	if _, err := script("add"); err != nil {
		return result{}, fmt.Errorf("add jobs: %w", err)
	}
	var output []byte
	r, err := s.around(ctx, n, func() (err error) { output, err = script("work"); return err })
	if err != nil {
		return r, fmt.Errorf("work: %w", err)
	}
	var told struct {
		Seconds float64 `json:"seconds"` // without the start of node
	}
	err = json.Unmarshal(output, &told)
	r.perSecond = float64(n) / told.Seconds
	return r, err
}
