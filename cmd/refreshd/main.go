// Command refreshd keeps models fresh: it starts refresh attempts on a schedule, decides about their failures, and gives up with a reason.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	_ "golang.org/x/crypto/x509roots/fallback" // and no authorities of TLS either, as in an image from scratch
	"golang.org/x/term"

	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/zonedata"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/zones"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitDiffer = 3 // of apply --plan, import and shadow: something differs
)

// gcPercent lets the heap grow to five times its live size, some 20 MB in a daemon. With Go's default of 100 a third of the time went into
// collecting garbage.
const gcPercent = 400

// walkPercent serves commands that keep something of each model: 40 MB of a million, where gcPercent would take 250 MB.
const walkPercent = 50

func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

func main() {
	setGCPercent(gcPercent)
	setLogGlobals()
	redis.LogTo(logRedis)
	zoneData, err := zonedata.Choose(os.Getenv("ZONEINFO"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "refreshd:", err)
		os.Exit(exitUsage)
	}
	zones.Use(zoneData)
	ctx, done := listen(context.Background())
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
	done()
	os.Exit(code)
}

// run executes args and returns the exit code. Nothing runs on when it returns.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, environ: environ, problems: map[string]int{}}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if _, rest, unknown := root.Find(args); err != nil && unknown != nil {
		_ = root.ParseFlags(rest) // a wrong flag matters less
		if found := root.Flags().Args(); len(found) > 0 {
			err = unknownCommand(root, found)
		}
	}
	return a.exitCode(command, err)
}

// usageError is a wrong use that the parser of flags cannot notice.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, values ...any) error { return usageError{fmt.Errorf(format, values...)} }

func oneOf(flag, text string, known []string) error {
	if slices.Contains(known, text) {
		return nil
	}
	return usagef("--%s: expected one of %s, found %q", flag, strings.Join(known, ", "), text)
}

// errReported ends a command that has already printed its failures.
var errReported = operate.ErrRefused

func reported(failed bool) error {
	if failed {
		return errReported
	}
	return nil
}

func (a *app) exitCode(command *cobra.Command, err error) int {
	a.printProblemCounts()
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errDiffers):
		return exitDiffer
	}
	reported := err
	if refusal, is := errors.AsType[operate.Refusal](err); is {
		reported = usageError{nameFlag(command, refusal)}
	}
	a.report(hint.Add(hint.Nearest(reported.Error(), err), err, hint.CommandLine))
	if _, wrong := errors.AsType[usageError](reported); wrong || !a.entered {
		a.report("--help has more")
		return exitUsage
	}
	return exitFailed
}

var otherField = regexp.MustCompile("`([a-z-]+)`")

// nameFlag writes the fields of a refusal as flags.
func nameFlag(command *cobra.Command, err error) error {
	refused, is := errors.AsType[*document.Error](err)
	if !is {
		return err
	}
	if names := strings.FieldsFunc(refused.Field, func(r rune) bool { return r == '.' || r == ' ' }); len(names) > 0 && command.Flags().Lookup(names[0]) != nil {
		refused.Field = "--" + refused.Field
	}
	refused.Want = otherField.ReplaceAllString(refused.Want, "--$1")
	return refused
}

func (a *app) report(text string) { fmt.Fprintln(a.stderr, "refreshd: "+plain(text)) }

// stopSignals end a process. The first ends the context of the command. The second makes a daemon hand back the work in hand, and kills any other
// command: a person who presses Ctrl-C twice does not want to wait. The third kills a daemon too.
type stopSignals struct {
	hurry  chan struct{} // closed by the second signal
	daemon atomic.Bool   // a daemon listens to hurry
}

type stopSignalsKey struct{}

// hurryOf returns a channel that the second signal closes, and marks the process as a daemon. nil: no signals are awaited.
func hurryOf(ctx context.Context) <-chan struct{} {
	s, ok := ctx.Value(stopSignalsKey{}).(*stopSignals)
	if !ok {
		return nil
	}
	s.daemon.Store(true)
	return s.hurry
}

// listen returns a context that ends with the first signal. The caller calls the returned function at the end.
func listen(parent context.Context) (context.Context, func()) {
	s := &stopSignals{hurry: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithValue(parent, stopSignalsKey{}, s))
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		cancel()
		select {
		case sent := <-signals:
			signal.Stop(signals) // the next one kills
			if s.daemon.Load() {
				close(s.hurry)
			} else if number, ok := sent.(syscall.Signal); ok {
				_ = syscall.Kill(os.Getpid(), number)
			}
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel() }
}

// leastStop is how long any daemon may take to end. A round takes milliseconds, unless Redis hangs.
const leastStop = 2 * time.Second

// bounded runs a daemon until it ends. When ctx has ended, it waits for limit, or for leastStop after a second signal. Each write is one script, so
// a daemon that is cut off leaves nothing half done.
func bounded(ctx context.Context, loop daemon, limit time.Duration, hurry <-chan struct{}) error {
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit = max(limit, leastStop)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-hurry:
			hurry, limit = nil, leastStop
			timer.Reset(limit)
		case <-timer.C:
			return fmt.Errorf("expected the work in hand to end within %s, found it going on: cut off", limit)
		}
	}
}

// setLogGlobals sets the globals of zerolog, once, before anything logs.
func setLogGlobals() {
	zerolog.TimeFieldFormat = model.TimeLayout // milliseconds, sortable
	zerolog.TimestampFunc = func() time.Time { return time.Now().UTC() }
	zerolog.DefaultContextLogger = new(zerolog.Nop())
}

// logLevels are checked, because zerolog takes "" and "7" as levels at which nothing is logged.
var logLevels = []string{"trace", "debug", "info", "warn", "error"}

// newLogger writes JSON, or text for people: of a round, the text has no counts of nothing. The level is one of logLevels.
func newLogger(to io.Writer, level string, forPeople bool) zerolog.Logger {
	parsed, _ := zerolog.ParseLevel(level)
	if forPeople {
		to = zerolog.ConsoleWriter{Out: to, TimeFormat: "15:04:05.000", NoColor: !isTerminal(to), FormatPrepare: func(fields map[string]any) error {
			maps.DeleteFunc(fields, func(_ string, value any) bool { return value == json.Number("0") })
			return nil
		}}
	}
	return zerolog.New(zerolog.SyncWriter(to)).Level(parsed).With().Timestamp().Logger()
}

func isTerminal(to any) bool {
	file, ok := to.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// redisLog is the logger of go-redis, which has only one in a program.
var redisLog atomic.Pointer[zerolog.Logger]

func logRedis(_ context.Context, message string) {
	if log := redisLog.Load(); log != nil {
		log.Debug().Str("text", message).Msg("redis client") // the caller reports every error anyway
	}
}
