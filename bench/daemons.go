package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
)

// daemons are processes of refreshd, and what they serve.
type daemons struct {
	program, url string
	running      []*exec.Cmd
	waiting      sync.WaitGroup
}

// saveFor saves what a load asks for: its models, and its limits in their policy.
func (d *daemons) saveFor(ctx context.Context, book *ledger) error {
	limits, refresh := "", "now"
	if book.hosts > 0 {
		limits = fmt.Sprintf(`,"limits":[{"key":"{host(input_url)}","running":%d}]`, book.atATime)
	}
	if book.asked() {
		refresh = "planned"
	}
	policy := `{"name":"bench","rrule":"FREQ=DAILY","timeout":"10m"` + limits + `}`
	return d.save(ctx, policy, refresh, book.n, func(i int) string { return book.host(i, book.n) })
}

// save saves a policy and n models, which are refreshed now or as planned.
func (d *daemons) save(ctx context.Context, policy, refresh string, n int, host func(i int) string) error {
	if err := d.say(ctx, policy, "policy", "put", "-"); err != nil {
		return err
	}
	if err := d.walk(ctx); err != nil {
		return err
	}
	var models strings.Builder
	for i := range n {
		fmt.Fprintf(&models, `{"uid":"%s","policy":"bench","refresh":"%s","payload":{"input_url":"%s"}}`+"\n", uid(i), refresh, address(i, host(i)))
	}
	return d.say(ctx, models.String(), "model", "put", "-", "--format", "jsonl")
}

// walk lets a poller walk over all models, of which there is none yet, as it does when a policy was saved.
func (d *daemons) walk(ctx context.Context) error {
	queue, clients, err := store.Dial(ctx, d.url, store.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = clients.Close() }()
	poller := daemons{program: d.program, url: d.url}
	defer poller.end()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err = poller.start(stop, "poller")
	for open := 1; err == nil && open > 0; time.Sleep(100 * time.Millisecond) {
		open = 0
		err = queue.Each(func(part *store.Store) error {
			bulks, err := flow.Of(part).Bulks(ctx)
			open += len(bulks)
			return err
		})
	}
	return err
}

func (d *daemons) say(ctx context.Context, input string, args ...string) error {
	command := exec.CommandContext(ctx, d.program, append(args, "--redis", d.url)...)
	command.Stdin = strings.NewReader(input)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("refreshd %s %s: %w: %s", args[0], args[1], err, output)
	}
	return nil
}

// start starts daemons, and calls stop if one ends by itself.
func (d *daemons) start(stop context.CancelCauseFunc, names ...string) error {
	for _, name := range names {
		var complaint strings.Builder
		daemon := exec.Command(d.program, name, "--redis", d.url, "--log-level", "error")
		daemon.Stderr = &complaint
		if err := daemon.Start(); err != nil {
			return fmt.Errorf("start a %s: %w", name, err)
		}
		d.running = append(d.running, daemon)
		d.waiting.Go(func() {
			_ = daemon.Wait() // its state says the same
			stop(fmt.Errorf("%s ended: %s: %s", name, daemon.ProcessState, &complaint))
		})
	}
	return nil
}

// end ends all and returns for how long they kept processors busy.
func (d *daemons) end() (busy time.Duration) {
	for _, daemon := range d.running {
		_ = daemon.Process.Signal(syscall.SIGTERM)
	}
	d.waiting.Wait()
	for _, daemon := range d.running {
		busy += daemon.ProcessState.UserTime() + daemon.ProcessState.SystemTime()
	}
	return busy
}
