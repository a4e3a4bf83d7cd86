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
	for _, name := range []string{"bullmq.mjs", "bullmq-load.mjs", "package.json"} {
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
	return func(ctx context.Context, s *server, n int) (r result, err error) {
		script := node{dir, "bullmq.mjs", []string{s.addr, strconv.Itoa(n)}, nil}
		var out struct{ Seconds, Micros float64 } // without the start of node
		if err := script.run(ctx, "add", nil); err != nil {
			return r, err
		}
		r, err = around(ctx, n, func() error { return script.run(ctx, "work", &out) }, s)
		r.perSecond, r.processMicros = float64(n)/out.Seconds, out.Micros/float64(n)
		return r, err
	}
}

// bullmqLoad tells its script what to do. The script says what its way costs.
func bullmqLoad(dir string) keep {
	return func(ctx context.Context, s *server, book *ledger) (r result, err error) {
		input, err := json.Marshal(bullmqPlan(book))
		if err != nil {
			return r, err
		}
		script := node{dir, "bullmq-load.mjs", []string{s.addr}, input}
		if !book.asked() {
			if err := script.run(ctx, "add", nil); err != nil {
				return r, err
			}
		}
		var out struct {
			From     float64
			Attempts [][3]float64 // the number of its job, and from when to when
		}
		r, err = around(ctx, book.n, func() error { return script.run(ctx, "work", &out) }, s)
		at := func(ms float64) time.Time { return time.UnixMicro(int64(ms * 1000)) }
		for _, one := range out.Attempts {
			book.attempts = append(book.attempts, attempt{int(one[0]), at(one[1]), at(one[2])})
		}
		if book.asked() {
			book.from = at(out.From)
		}
		return r, err
	}
}

type bullmqJob struct {
	Host  string          `json:"host"`
	Data  json.RawMessage `json:"data"`
	After float64         `json:"after"` // milliseconds
	Takes float64         `json:"takes"` // likewise
}

func bullmqPlan(book *ledger) any {
	var plan struct {
		Hosts   []string    `json:"hosts"`
		Workers int         `json:"workers"` // of a host
		Asked   bool        `json:"asked"`
		Jobs    []bullmqJob `json:"jobs"`
	}
	plan.Hosts, plan.Workers = book.queues()
	plan.Asked = book.asked()
	for i := range book.n {
		host := book.host(i, book.n)
		plan.Jobs = append(plan.Jobs, bullmqJob{host, json.RawMessage(payload(i, host)), ms(book.after(i)), ms(book.takes(host))})
	}
	return plan
}

// node is a script that runs in a process of its own.
type node struct {
	dir, script string
	args        []string
	input       []byte
}

// run lets the script do a verb, and reads what it prints unless that is of no interest.
func (n node) run(ctx context.Context, verb string, into any) error {
	command := exec.CommandContext(ctx, "node", append([]string{n.script, verb}, n.args...)...)
	command.Dir, command.Stdin, command.Stderr = n.dir, bytes.NewReader(n.input), os.Stderr
	output, err := command.Output()
	if err == nil && into != nil {
		err = json.Unmarshal(output, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", n.script, verb, err)
	}
	return nil
}
