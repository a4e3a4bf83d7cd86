// Command refreshd keeps models fresh: it starts refresh attempts on a schedule, decides about their failures, and gives up with a reason.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	_ "time/tzdata" // schedules have time zones, and the host may have none

	_ "golang.org/x/crypto/x509roots/fallback" // and no authorities of TLS either, as in an image from scratch

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitDiffer = 3 // of apply --plan and shadow: something differs
)

// gcPercent lets the heap grow to five times what is kept, some 20 MB in a daemon. All commands keep little and drop much, so that with
// Go's own 100 a third of the time went into looking for garbage.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	setLogGlobals()
	store.LogTo(logRedis)
	ctx, done := listen(context.Background())
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
	done()
	os.Exit(code)
}

// run is the program: it executes args and returns the exit code. It is done when it returns: nothing runs on.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, environ: environ}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	return a.exitCode(command, err)
}

// usageError is the wrong use of a command that a parser of flags cannot notice.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, values ...any) error { return usageError{fmt.Errorf(format, values...)} }

// oneOf refuses the text of a flag that is none of those known.
func oneOf(flag, text string, known []string) error {
	if slices.Contains(known, text) {
		return nil
	}
	return usagef("--%s: expected one of %s, found %q", flag, strings.Join(known, ", "), text)
}

// errReported ends a command whose failures have been told one by one.
var errReported = errors.New("failed, as told above")

func (a *app) exitCode(command *cobra.Command, err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errDiffers):
		return exitDiffer
	}
	if refusal, is := errors.AsType[operate.Refusal](err); is {
		err = usageError{nameFlag(command, refusal)}
	}
	a.complain(err.Error())
	if _, wrong := errors.AsType[usageError](err); wrong || !a.entered {
		a.complain("--help tells more")
		return exitUsage
	}
	return exitFailed
}

// nameFlag names the flag that holds a refused value as people write it.
func nameFlag(command *cobra.Command, err error) error {
	refused, is := errors.AsType[*document.Error](err)
	if !is {
		return err
	}
	if field, _, _ := strings.Cut(refused.Field, "."); command.Flags().Lookup(field) != nil {
		refused.Field = "--" + refused.Field
	}
	return refused
}

func (a *app) complain(text string) { fmt.Fprintln(a.stderr, "refreshd: "+plain(text)) }
