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

// installBullMQ installs BullMQ beside its scripts and tells its version.
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
		output, r, err := addAndWork(ctx, s, dir, "bullmq.mjs", n)
		if err != nil {
			return r, err
		}
		var told struct {
			Seconds float64 `json:"seconds"` // without the start of node
		}
		err = json.Unmarshal(output, &told)
		r.perSecond = float64(n) / told.Seconds
		return r, err
	}
}

// addAndWork runs a script twice: to add n jobs, and then, measured, to do them. It returns what it tells.
func addAndWork(ctx context.Context, s *server, dir, name string, n int, how ...string) (output []byte, r result, err error) {
	script := func(verb string) ([]byte, error) {
		command := exec.CommandContext(ctx, "node", append([]string{name, verb, s.addr, strconv.Itoa(n)}, how...)...)
		command.Dir, command.Stderr = dir, os.Stderr
		return command.Output()
	}
	if _, err := script("add"); err != nil {
		return nil, r, fmt.Errorf("add jobs: %w", err)
	}
	r, err = s.around(ctx, n, func() (err error) { output, err = script("work"); return err })
	if err != nil {
		return nil, r, fmt.Errorf("work: %w", err)
	}
	return output, r, nil
}

// bullmqLimits runs its script twice, as bullmqCycles does. The script says what its way costs.
func bullmqLimits(dir string) keep {
	return func(ctx context.Context, s *server, l limits, n int) (seen, result, error) {
		how := []string{strconv.Itoa(l.hosts), strconv.Itoa(l.atATime), strconv.FormatInt(l.work.Milliseconds(), 10), strconv.FormatBool(l.slow)}
		output, r, err := addAndWork(ctx, s, dir, "bullmq-limits.mjs", n, how...)
		if err != nil {
			return seen{}, r, err
		}
		var told struct {
			Took, Others float64 // milliseconds
			Most         int
		}
		if err := json.Unmarshal(output, &told); err != nil {
			return seen{}, r, fmt.Errorf("read what BullMQ tells: %w", err)
		}
		ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
		return seen{took: ms(told.Took), others: ms(told.Others), most: told.Most}, r, nil
	}
}
