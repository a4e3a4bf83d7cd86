package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// installBullMQ installs BullMQ beside its scripts and returns its version.
func installBullMQ(ctx context.Context, dir string) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is not installed", program)
		}
	}
	for _, name := range []string{"bullmq.mjs", "bullmq-limits.mjs", "package.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(dir+"/"+name, text, 0o600); err != nil {
			return "", err
		}
	}
	install := exec.CommandContext(ctx, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent")
	install.Dir = dir
	if output, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w: %s", err, bytes.TrimSpace(output))
	}
	var installed struct {
		Version string `json:"version"`
	}
	text, err := os.ReadFile(dir + "/node_modules/bullmq/package.json")
	if err == nil {
		err = json.Unmarshal(text, &installed)
	}
	return installed.Version, err
}

func bullmqCycles(dir string) run {
	return func(ctx context.Context, s *server, n int) (result, error) {
		out, r, err := addAndWork(ctx, s, dir, "bullmq.mjs", n)
		r.perSecond, r.processMicros = float64(n)/out.Seconds, out.Micros/float64(n)
		return r, err
	}
}

// bullmqLimits runs its script twice, as bullmqCycles does. The script says what its way costs.
func bullmqLimits(dir string) keep {
	return func(ctx context.Context, s *server, l limits, n int) (seen, result, error) {
		how := []string{strconv.Itoa(l.hosts), strconv.Itoa(l.atATime), strconv.FormatInt(l.work.Milliseconds(), 10), strconv.FormatBool(l.slow)}
		out, r, err := addAndWork(ctx, s, dir, "bullmq-limits.mjs", n, how...)
		ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
		return seen{took: ms(out.Took), others: ms(out.Others), most: out.Most}, r, err
	}
}

// printed is what a script prints, each of them a part of it.
type printed struct {
	Seconds      float64 // without the start of node
	Micros       float64 // of CPU, likewise
	Took, Others float64 // milliseconds
	Most         int
}

// addAndWork runs a script twice: to add n jobs, and then, measured, to do them.
func addAndWork(ctx context.Context, s *server, dir, name string, n int, how ...string) (out printed, r result, err error) {
	script := func(verb string) ([]byte, error) {
		command := exec.CommandContext(ctx, "node", append([]string{name, verb, s.addr, strconv.Itoa(n)}, how...)...)
		command.Dir, command.Stderr = dir, os.Stderr
		return command.Output()
	}
	if _, err := script("add"); err != nil {
		return out, r, fmt.Errorf("add jobs: %w", err)
	}
	var output []byte
	if r, err = around(ctx, n, func() (err error) { output, err = script("work"); return err }, s); err != nil {
		return out, r, fmt.Errorf("work: %w", err)
	}
	if err = json.Unmarshal(output, &out); err != nil {
		err = fmt.Errorf("read the output of BullMQ: %w", err)
	}
	return out, r, err
}
