//go:build unix

package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/refreshd/refreshd/worker"
)

// Exec returns a handler that runs a program for every attempt, without a shell. The program finds the payload as a JSON
// object on stdin and in REFRESHD_PAYLOAD_ variables, and the attempt in REFRESHD_UID, REFRESHD_ATTEMPT_UID,
// REFRESHD_ATTEMPT_NO, REFRESHD_DEADLINE_AT and REFRESHD_PLANNED_AT. Its exit code is the result:
//
//	0               success
//	75              failure that a retry may mend (EX_TEMPFAIL)
//	64, 65, 77, 78  failure that no retry mends (EX_USAGE, EX_DATAERR, EX_NOPERM, EX_CONFIG)
//	any other       failure; the policy decides about a retry
//
// The reason is the last line that it wrote to stderr, the error type exit_65 or signal_9.
//
// The program leads a process group of its own. When the context ends, the group gets SIGTERM and after KillAfter SIGKILL;
// when the program has ended, what it left behind in its group is killed at once. Its exit code counts if it ended before
// the context, even if another process still holds its output open.
//
// The error says that the program cannot be found.
func Exec(argv []string, options ExecOptions) (worker.Handler, error) {
	if len(argv) == 0 {
		return nil, errors.New("exec: expected a program, found nothing")
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	options = options.withDefaults()
	return func(ctx context.Context, attempt *worker.Attempt) error {
		return run(ctx, attempt, argv, append(bytes.Clone(attempt.Payload), '\n'), options)
	}, nil
}

// run runs a program with an input, and reads how it ended.
func run(ctx context.Context, attempt *worker.Attempt, argv []string, input []byte, options ExecOptions) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = options.Dir
	cmd.Env = slices.Concat(options.Env, environment(attempt))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ended := false // the context, before the program; Wait waits for Cancel
	cmd.Cancel = func() error {
		err := killGroup(cmd, syscall.SIGTERM)
		ended = !errors.Is(err, os.ErrProcessDone)
		return err
	}
	cmd.WaitDelay = options.KillAfter // after this the leader is killed
	output := &tail{attempt: attempt, keeps: options.Log}
	if output.keeps {
		defer func() { attempt.Log(output.String()) }()
	}
	stdout := &lastLine{next: io.MultiWriter(output, &capped{options.Stdout, options.MaxOutput})}
	stderr := &lastLine{next: io.MultiWriter(output, &capped{options.Stderr, options.MaxOutput})}
	var pipes pipes
	err := pipes.start(cmd, input, stdout, stderr)
	if err != nil {
		pipes.drain()
		return stopped(ctx, worker.ErrorType(fmt.Errorf("start program: %w", err), "exec_start"))
	}
	err = cmd.Wait()
	// Nobody is left in most cases. Those who are may hold the pipes open, so they go first.
	_ = killGroup(cmd, syscall.SIGKILL)
	pipes.drain()
	if ended {
		return context.Cause(ctx)
	}
	readMetrics(attempt, []byte(stdout.text()))
	return verdict(cmd.ProcessState, err, stderr.text())
}

// pipes carry the input and the output of a program. With the pipes of os/exec, Wait would last until children of the program have closed them too.
type pipes struct {
	outputs []*os.File // our ends
	copying sync.WaitGroup
}

func (p *pipes) start(cmd *exec.Cmd, input []byte, stdout, stderr io.Writer) error {
	for _, output := range []struct{ from, to *io.Writer }{{&cmd.Stdout, &stdout}, {&cmd.Stderr, &stderr}} {
		if *output.to == nil {
			continue
		}
		ours, theirs, err := os.Pipe()
		if err != nil {
			return err
		}
		defer func() { _ = theirs.Close() }()
		*output.from = theirs
		p.outputs = append(p.outputs, ours)
		p.copying.Go(func() {
			_, _ = io.Copy(*output.to, ours)
			_ = ours.Close()
		})
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.copying.Go(func() {
		_, _ = stdin.Write(input) // a program need not read it; Wait ends this
		_ = stdin.Close()
	})
	return nil
}

// drain waits until all is copied, or for drainTime if somebody still holds a pipe open.
func (p *pipes) drain() {
	enough := time.AfterFunc(200*time.Millisecond, func() { // only a process that has left the group can make use of it
		for _, file := range p.outputs {
			_ = file.SetReadDeadline(time.Unix(1, 0)) // long past; it fails for one that is closed, which needs none
		}
	})
	defer enough.Stop()
	p.copying.Wait()
}

func killGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// verdict reads how a program ended. Output that could not be copied to its end does not change what the exit code says.
func verdict(state *os.ProcessState, err error, reason string) error {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case state.Success():
		return nil
	case ok && status.Signaled():
		if reason == "" {
			reason = "killed by signal: " + status.Signal().String()
		}
		return worker.ErrorType(errors.New(reason), fmt.Sprintf("signal_%d", status.Signal()))
	case state.ExitCode() <= 0:
		return fmt.Errorf("run program: %w", err)
	}
	code := state.ExitCode()
	if reason == "" {
		reason = fmt.Sprintf("exit status %d", code)
	}
	err = worker.ErrorType(errors.New(reason), fmt.Sprintf("exit_%d", code))
	switch code { // some have a meaning in sysexits.h
	case 75: // EX_TEMPFAIL
		return worker.Retryable(err)
	case 64, 65, 77, 78: // EX_USAGE, EX_DATAERR, EX_NOPERM, EX_CONFIG
		return worker.NotRetryable(err)
	default:
		return err
	}
}
