//go:build unix

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
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
// when the program has ended, so must everything that it left behind in its group.
//
// The error says that the program cannot be found.
func Exec(argv []string, options ExecOptions) (Handler, error) {
	if len(argv) == 0 {
		return nil, errors.New("exec: expected a program, found nothing")
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	options = options.withDefaults()
	return func(ctx context.Context, attempt *Attempt) error {
		return runProgram(ctx, attempt, argv, options)
	}, nil
}

func runProgram(ctx context.Context, attempt *Attempt, argv []string, options ExecOptions) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = options.Dir
	cmd.Env = append(inherited(options.Env), environment(attempt)...)
	cmd.Stdin = bytes.NewReader(append(bytes.Clone(attempt.Payload), '\n'))
	stderr := &lastLine{next: options.Stderr}
	cmd.Stdout, cmd.Stderr = options.Stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd, syscall.SIGTERM) }
	// After this the leader is killed, and pipes that somebody else holds open are closed on our side.
	cmd.WaitDelay = options.KillAfter
	if err := cmd.Start(); err != nil {
		return stopped(ctx, ErrorType(fmt.Errorf("start program: %w", err), "exec_start"))
	}
	err := cmd.Wait()
	_ = killGroup(cmd, syscall.SIGKILL) // nobody is left in most cases
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return verdict(cmd.ProcessState, err, stderr.text())
}

func inherited(env []string) []string {
	if env == nil {
		return os.Environ()
	}
	return append([]string(nil), env...)
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
		return ErrorType(errors.New(reason), fmt.Sprintf("signal_%d", status.Signal()))
	case state.ExitCode() > 0:
		return exitError(state.ExitCode(), reason)
	default:
		return fmt.Errorf("run program: %w", err)
	}
}
