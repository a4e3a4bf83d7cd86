package conformance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

var printing sync.Mutex

// process is a worker under test, with whatever it starts.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
	how     string // it ended; to be read when exited is closed
	printed sync.WaitGroup
}

// start starts the worker in a process group of its own.
func start(config *Config, scenario string, environ []string) (*process, error) {
	command := exec.Command(config.Command[0], config.Command[1:]...)
	command.Env = slices.Concat(config.Environ, environ) // of a name that comes twice the last value counts
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write := io.Pipe()
	command.Stdout, command.Stderr = write, write
	command.WaitDelay = 200 * time.Millisecond // whom it has left behind may hold them open
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	p := &process{command: command, exited: make(chan struct{})}
	p.printed.Go(func() { prefixed(read, scenario, config.Stderr) })
	p.printed.Go(func() {
		_ = command.Wait()
		p.how = command.ProcessState.String()
		p.signal(syscall.SIGKILL) // whom it has left behind
		close(p.exited)
		_ = write.Close()
	})
	return p, nil
}

// prefixed passes on lines behind a name, without terminal controls.
func prefixed(from io.Reader, name string, to io.Writer) {
	lines := bufio.NewReader(from)
	for {
		line, _, err := lines.ReadLine() // in pieces, if it is long
		if err != nil {
			return
		}
		printing.Lock()
		fmt.Fprintf(to, "[%s] %s\n", name, document.OneLine(string(line)))
		printing.Unlock()
	}
}

// end asks the worker to end, and kills it when it has not within the patience; false: it had to be killed.
func (p *process) end(ctx context.Context, patience time.Duration) bool {
	p.signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-p.exited:
		return true
	case <-ctx.Done():
		p.kill()
		return false
	}
}

// signal reaches all of its group; one that has ended needs none.
func (p *process) signal(number syscall.Signal) { _ = syscall.Kill(-p.command.Process.Pid, number) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	p.printed.Wait()
}

func (p *process) ended() string {
	select {
	case <-p.exited:
		return p.how
	default:
		return ""
	}
}
