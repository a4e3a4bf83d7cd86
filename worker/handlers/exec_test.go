//go:build unix

package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

func shell(t *testing.T, script string, options ExecOptions) worker.Handler {
	t.Helper()
	handler := check.Got(Exec([]string{"sh", "-c", script}, options))(t)
	return handler
}

func TestAProgramGetsThePayloadAndTheAttempt(t *testing.T) {
	var out check.Buffer
	script := `cat; echo "$REFRESHD_UID $REFRESHD_ATTEMPT_UID $REFRESHD_ATTEMPT_NO $REFRESHD_DEADLINE_AT $REFRESHD_PLANNED_AT $TRACEPARENT"
		echo "$REFRESHD_PAYLOAD_INPUT_URL $OWN"; pwd`
	dir := check.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	handler := shell(t, script, ExecOptions{Stdout: &out, Dir: dir, Env: []string{"OWN=yes", "PATH=" + os.Getenv("PATH")}})
	attempt := example()
	attempt.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	must(t, handler(t.Context(), attempt))
	want := `{"input_url":"http://x/?a=1&b=2"}
m a1 2 2026-11-21T07:00:00.000Z 2026-11-21T08:00:00.000Z 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
http://x/?a=1&b=2 yes
` + dir + "\n"
	equal(t, want, out.String())
}

func TestTheExitCodeMakesTheResult(t *testing.T) {
	yes, no := true, false
	for script, want := range map[string]policy.Failure{
		"exit 1":                           {Reason: "exit status 1", ErrorType: "exit_1"},
		"exit 255":                         {Reason: "exit status 255", ErrorType: "exit_255"},
		"exit 75":                          {Reason: "exit status 75", ErrorType: "exit_75", Retryable: &yes},
		"exit 64":                          {Reason: "exit status 64", ErrorType: "exit_64", Retryable: &no},
		"echo no such row >&2; exit 65":    {Reason: "no such row", ErrorType: "exit_65", Retryable: &no},
		"exit 66":                          {Reason: "exit status 66", ErrorType: "exit_66"},
		"exit 77":                          {Reason: "exit status 77", ErrorType: "exit_77", Retryable: &no},
		"exit 78":                          {Reason: "exit status 78", ErrorType: "exit_78", Retryable: &no},
		"kill -9 $$":                       {Reason: "killed by signal: killed", ErrorType: "signal_9"},
		"echo dying >&2; kill -15 $$":      {Reason: "dying", ErrorType: "signal_15"},
		`printf 'a\nb\n\n \n' >&2; exit 3`: {Reason: "b", ErrorType: "exit_3"},
		`printf 'a\nb' >&2; exit 3`:        {Reason: "b", ErrorType: "exit_3"},
		`echo out; exit 3`:                 {Reason: "exit status 3", ErrorType: "exit_3"},
	} {
		t.Run(script, func(t *testing.T) {
			_, got := try(t.Context(), t, shell(t, script, ExecOptions{}), example())
			stopIf(t, got.Type != model.MessageFailure, "got %+v", got)
			equal(t, want, got.Failure, whole)
		})
	}
}

func TestALongLineOfStderrIsReadWithBoundedMemory(t *testing.T) {
	l := lastLine{next: io.Discard}
	for range 10_000 {
		_, _ = l.Write(bytes.Repeat([]byte("x"), 1000))
	}
	failIf(t, cap(l.line) > 2*worker.MaxText, "holds %d bytes", cap(l.line))
	got := l.text()
	failIf(t, len(got) != worker.MaxText, "kept %d bytes, want %d", len(got), worker.MaxText)
}

func TestALineThatIsCutWithinASecretShowsNoHalfOfIt(t *testing.T) {
	l := lastLine{next: io.Discard}
	_, _ = io.WriteString(&l, strings.Repeat("x", worker.MaxText-25)+" mysql://root:hunter2hunter2@db\n")
	got := l.text()
	failIf(t, strings.Contains(got, "hunter") || !strings.HasSuffix(got, " mysql://***"), "found the end %q", got[len(got)-40:])
}

func TestAProgramNeedNotReadItsInput(t *testing.T) {
	a := example()
	a.Payload = json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	must(t, shell(t, "exit 0", ExecOptions{})(t.Context(), a))
}

func TestPayloadFieldsBecomeVariables(t *testing.T) {
	a := &worker.Attempt{UID: "m", AttemptUID: "a1", Payload: json.RawMessage(`{"a-b":"1","a_b":"2","n":12345678901234567890.50,
		"t":true,"nul":"x\u0000y","null":null,"list":[1],"object":{},"ünï":"é\n","big":"` + strings.Repeat("x", maxEnv) + `"}`)}
	var got []string
	for _, variable := range environment(a) {
		if rest, found := strings.CutPrefix(variable, "REFRESHD_PAYLOAD_"); found {
			got = append(got, rest)
		}
	}
	slices.Sort(got)
	want := []string{"A_B=1", "N=12345678901234567890.50", "T=true", "_N_=é\n"}
	equal(t, want, got, whole)
}

// Of two fields that fill the room the second just fits, or is one byte too long.
func TestTheVariablesOfAPayloadAreBoundedTogether(t *testing.T) {
	for over, want := range map[int]int{0: 2, 1: 1} {
		room := 128<<10 - len("REFRESHD_PAYLOAD_A") - len("REFRESHD_PAYLOAD_B")
		a := &worker.Attempt{Payload: json.RawMessage(`{"a":"` + strings.Repeat("x", room/2) + `","b":"` + strings.Repeat("x", room-room/2+over) + `"}`)}
		found := slices.DeleteFunc(environment(a), func(variable string) bool { return !strings.HasPrefix(variable, "REFRESHD_PAYLOAD_") })
		failIf(t, len(found) != want, "%d bytes too long: %d variables, want %d", over, len(found), want)
	}
}

// fifo returns the path of a named pipe and a function that waits until somebody has opened it for writing and everybody
// who did has ended; began is closed in between.
func fifo(t *testing.T) (path string, began <-chan struct{}, gone <-chan struct{}) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(path, 0o600))
	opened, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		file, err := os.Open(path)
		close(opened)
		if err == nil {
			_, _ = io.Copy(io.Discard, file)
			_ = file.Close()
		}
	}()
	return path, opened, ended
}

func TestTheWholeProcessGroupEndsWithTheContext(t *testing.T) {
	t.Parallel()
	const askedFirst = "all are asked before they are killed"
	for name, script := range map[string]string{
		"stops when told":                 `exec 3>"$0"; sleep 1000 & wait`,
		"ignores the signal":              `trap "" TERM; exec 3>"$0"; while :; do sleep 1000; done`,
		"a grandchild ignores the signal": `(trap "" TERM; exec 3>"$0"; while :; do sleep 1000; done) & wait`,
		"grandchild of nobody":            `exec 3>"$0"; (trap "" TERM; sleep 1000) & exec 3>&-; wait`,
		"succeeds when stopped":           `trap "exit 0" TERM; exec 3>"$0"; sleep 1000 & wait`,
		// The leader outlives the signal until its child has ended by it too.
		askedFirst: `trap : TERM; (exec 3>"$0"; exec sleep 1000) & wait; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			path, began, gone := fifo(t)
			options := ExecOptions{KillAfter: 100 * time.Millisecond, Stdout: &check.Buffer{}}
			if name == askedFirst {
				options.KillAfter = time.Hour
			}
			handler, err := Exec([]string{"sh", "-c", script, path}, options)
			must(t, err)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended := make(chan error, 1)
			go func() { ended <- handler(ctx, example()) }()
			check.Await(t, began, "the begin of the program")
			cancel(worker.ErrFenceLost)
			err = check.Await(t, ended, "the end of the handler")
			failIf(t, !errors.Is(err, worker.ErrFenceLost), "got %v, want worker.ErrFenceLost", err)
			check.Await(t, gone, "the end of every process")
		})
	}
}

func TestAProgramThatLeavesOthersBehindDoesNotBlock(t *testing.T) {
	path, began, gone := fifo(t)
	handler, err := Exec([]string{"sh", "-c", `(exec 3>"$0"; while :; do sleep 1000; done) & read line <"$1"`, path, "/dev/null"},
		ExecOptions{KillAfter: 100 * time.Millisecond, Stdout: &check.Buffer{}})
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- handler(t.Context(), example()) }()
	err = check.Await(t, ended, "the end of the handler")
	failIf(t, err == nil || !strings.Contains(err.Error(), "exit status 1"), "got %v, want exit status 1", err)
	select {
	case <-began:
		check.Await(t, gone, "the end of every process")
	default: // it was killed before it began; the reader of the pipe still waits
		release := check.Got(os.OpenFile(path, os.O_WRONLY, 0))(t)
		_ = release.Close()
		check.Await(t, gone, "the end of the reader")
	}
}

func TestTheExitCodeCountsWhoeverHoldsThePipes(t *testing.T) {
	for script, want := range map[string]string{
		"(sleep 1000) & exit 0":                                "",
		"(sleep 1000) & echo broken >&2; exit 3":               "broken",
		`(trap "" TERM; sleep 1000; sleep 1000) & exit 0`:      "",
		`exec 3<&0; (sleep 1000 <&3 >/dev/null 2>&1) & exit 0`: "",
	} {
		t.Run(script, func(t *testing.T) {
			a := example()
			a.Payload = json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
			ctx, cancel := context.WithTimeoutCause(t.Context(), check.Limit, worker.ErrDeadline)
			defer cancel()
			err := shell(t, script, ExecOptions{KillAfter: time.Hour, Stdout: &check.Buffer{}})(ctx, a)
			failIf(t, want == "" && err != nil || want != "" && (err == nil || err.Error() != want), "got %v, want %q", err, want)
		})
	}
}

func TestAProgramIsNotAwaitedForOneThatLeftItsGroup(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
	dir := t.TempDir()
	release, left := filepath.Join(dir, "release"), filepath.Join(dir, "left")
	for _, path := range []string{release, left} {
		must(t, syscall.Mkfifo(path, 0o600))
	}
	script := `setsid sh -c 'echo >"$1"; read line <"$0"' "$0" "$1" & read line <"$1"; echo last >&2; exit 3`
	handler, err := Exec([]string{"sh", "-c", script, release, left}, ExecOptions{KillAfter: time.Hour, Stdout: &check.Buffer{}})
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- handler(t.Context(), example()) }()
	err = check.Await(t, ended, "the end of the handler")
	failIf(t, err == nil || err.Error() != "last", "got %v, want last", err)
	file, err := os.OpenFile(release, os.O_WRONLY, 0) // waits for the one that left, and lets it end
	must(t, err)
	_ = file.Close()
}

func TestAProgramThatCannotBeFoundIsRefusedAtOnce(t *testing.T) {
	_, err := Exec([]string{"no-such-program-here"}, ExecOptions{})
	failIf(t, err == nil, "expected an error, got nil")
	_, err = Exec(nil, ExecOptions{})
	failIf(t, err == nil, "expected an error, got nil")
}

func TestAProgramThatCannotBeStartedIsAFailure(t *testing.T) {
	_, got := try(t.Context(), t, shell(t, "exit 0", ExecOptions{Dir: filepath.Join(t.TempDir(), "gone")}), example())
	failIf(t, got.ErrorType != "exec_start", "got %+v, want error type exec_start", got)
}

func TestAProgramDoesNotInheritTheSettingsOfRefreshd(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://:geheim@127.0.0.1")
	t.Setenv("REFRESHD_REDIS", "redis://:geheim@127.0.0.1")
	t.Setenv("REFRESHD_HTTP_HEADER", "Authorization: geheim")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=geheim")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=geheim")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	t.Setenv("OWN", "yes")
	var out bytes.Buffer
	must(t, shell(t, `env`, ExecOptions{Stdout: &out})(t.Context(), example()))
	text := out.String()
	if strings.Contains(text, "geheim") || !strings.Contains(text, "OWN=yes") || !strings.Contains(text, "OTEL_EXPORTER_OTLP_ENDPOINT=http") || !strings.Contains(text, "REFRESHD_UID=m\n") || !strings.Contains(text, "REFRESHD_PAYLOAD_INPUT_URL=http") {
		t.Errorf("want the environment without secrets, got\n%s", text)
	}
}

func TestOfTheOutputOfAProgramNoMoreThanTheMostIsPassedOn(t *testing.T) {
	var out, errs bytes.Buffer
	err := shell(t, `head -c 10000000 /dev/zero | tr '\0' x; head -c 3000000 /dev/zero | tr '\0' y >&2; echo; echo why >&2; exit 1`,
		ExecOptions{Stdout: &out, Stderr: &errs, MaxOutput: 1000})(t.Context(), example())
	failIf(t, err == nil || !strings.HasSuffix(err.Error(), "y") && !strings.HasSuffix(err.Error(), "why"), "want the reason, got %.50q", err)
	const note = "\n[more output is dropped]\n"
	want := strings.Repeat("x", 1000) + note
	failIf(t, out.String() != want, "stdout: want 1000 bytes and a note, got %d", out.Len())
	want = strings.Repeat("y", 1000) + note
	failIf(t, errs.String() != want, "stderr: want 1000 bytes and a note, got %d", errs.Len())
}

func TestOutputThatJustFitsIsPassedOnWithoutANote(t *testing.T) {
	var out bytes.Buffer
	c := &capped{next: &out, left: 6}
	for _, part := range []string{"abc", "def", ""} {
		n, err := io.WriteString(c, part)
		stopIf(t, n != len(part) || err != nil, "%q: %d, %v", part, n, err)
	}
	failIf(t, out.String() != "abcdef", "want all of it and no note, got %q", out.String())
	_, _ = io.WriteString(c, "g")
	_, _ = io.WriteString(c, "h")
	want := "abcdef\n[more output is dropped]\n"
	failIf(t, out.String() != want, "want %q, got %q", want, out.String())
}

func TestManyProgramsAtOnce(t *testing.T) {
	handler := shell(t, `test "$(cat)" = "{\"input_url\":\"$REFRESHD_PAYLOAD_INPUT_URL\"}"`, ExecOptions{})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			a := example()
			a.Payload = fmt.Appendf(nil, `{"input_url":"http://x/%d"}`, i)
			err := handler(t.Context(), a)
			failIf(t, err != nil, "%d: %v", i, err)
		})
	}
	all.Wait()
}

func TestTheEndOfWhatAProgramWritesIsSentAsItsLog(t *testing.T) {
	log := func(script string, options ExecOptions) string {
		told := check.Got(worker.Try(t.Context(), shell(t, script, options), example()))(t)
		return told[len(told)-1].Log
	}
	for _, code := range []string{"0", "3"} {
		got := log(`echo first; head -c 300000 /dev/zero | tr '\0' x; echo; echo last; exit `+code, ExecOptions{Log: true})
		failIf(t, len(got) > model.MaxLog || !strings.HasSuffix(got, "x\nlast") || strings.Contains(got, "first"), "exit %s: expected the end, found %d bytes: %.60q", code, len(got), got)
	}
	for _, line := range []string{"one", "two"} {
		both := log("echo one; echo two >&2", ExecOptions{Log: true})
		failIf(t, !strings.Contains(both, line), "expected both outputs, found %q", both)
	}
	equal(t, "", log("echo said", ExecOptions{}))
}

func TestWhatAProgramWritesIsPassedOn(t *testing.T) {
	var out, errs check.Buffer
	must(t, shell(t, "echo one; echo two >&2", ExecOptions{Stdout: &out, Stderr: &errs})(t.Context(), example()))
	failIf(t, out.String() != "one\n" || errs.String() != "two\n", "stdout %q, stderr %q", out.String(), errs.String())
}
