package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

func queueCommand(a *app) *cobra.Command {
	return group("queue", "Divide a queue into parts, say how its messages are written, and show both",
		queueCreateCommand(a), queueSetCommand(a), a.operates("show", "Show how many parts a queue has, and how its messages are written", cobra.NoArgs,
			func(_ context.Context, o operate.Operator, _ []string) error { return a.showQueue(o) }))
}

func queueCreateCommand(a *app) *cobra.Command {
	var parts int
	command := &cobra.Command{
		Use: "create --parts N", Short: "Fix how many parts a queue has, before anything is saved in it", Args: cobra.NoArgs,
		Long: fmt.Sprintf(`Fix how many parts a queue has, 1 to %d, before anything is saved in it and before its daemons start. It is fixed for ever: a
model lives in the part that follows from its uid. To create a queue again alike changes nothing; one that nobody creates has
one part, with its own name.

Each part has keys of its own, as in {bigtables:3}:due. On Redis Cluster it lives in a slot of its own, so that the nodes share
the work of one queue, and the name of the queue needs no braces. On one Redis parts gain nothing.

All commands and daemons find the parts by the name of the queue. To look at one part alone: --queue '{bigtables:3}'.`, store.MaxParts),
		RunE: func(command *cobra.Command, _ []string) error {
			by, err := a.wantedBy()
			if err != nil {
				return err
			}
			err = a.withClients(func(clients *redis.Clients) error {
				return operate.CreateQueue(operate.Acting(command.Context(), a.operator(nil, by)), clients, a.configOf(a.store.Queue), parts)
			})
			if err != nil {
				return err
			}
			return a.withOperator(command.Context(), a.showQueue)
		},
	}
	command.Flags().IntVar(&parts, "parts", 0, "`N` parts, for ever")
	return command
}

func queueSetCommand(a *app) *cobra.Command {
	var r operate.SettingsRequest
	above := 0
	command := a.operates("set", "Say how messages call the model and the attempt, and where the payload stands in them", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			if err := o.SetQueue(ctx, r); err != nil {
				return err
			}
			return a.showQueue(o)
		}, r.Validate)
	command.PreRun = func(*cobra.Command, []string) {
		if command.Flags().Changed("new-error-above") {
			r.NewErrorAbove = &above
		}
	}
	command.Long = `Say how the messages of a queue call the model and the attempt, and where the payload stands in an attempt: its fields at the top
level beside ours, or as a whole under the name payload, where it may use any name. What is not named here stays as it is.

Daemons read this when they begin, and attempts that are handed out are written as before. So it is refused while any daemon has
given a heartbeat within the last minute, or any attempt is queued or running: stop the daemons, the dispatcher first. Payloads that
are stored already are not looked at: see that none uses the new names.

Daemons also read when they begin how many models may fail with one fingerprint before the operators are notified; that may be set at
any time.

Results may always call them uid and attempt_uid, or big_table_uid and refresh_attempt_uid, too.`
	flags := command.Flags()
	flags.IntVar(&above, "new-error-above", store.Config{}.WithDefaults().NewErrorAbove, "notify the operators of a fingerprint with which more than `N` models fail; 0: never")
	flags.StringVar(&r.ModelName, "model-name", "", "`NAME` of the field with the uid of the model, such as banner_uid")
	flags.StringVar(&r.AttemptName, "attempt-name", "", "`NAME` of the field with the uid of the attempt")
	flags.StringVar(&r.Payload, "payload", "", "`PLACE` of the payload: top or nested")
	flags.BoolVar(&r.Force, "force", false, "also while the queue is used")
	return command
}

func (a *app) showQueue(o operate.Operator) error {
	s := o.Settings()
	if a.json() {
		return a.printJSON(s)
	}
	first, last := o.Queue.Parts[0].Keys.Queue, o.Queue.Parts[s.Parts-1].Keys.Queue
	text := "1 part, " + first
	if s.Parts > 1 {
		text = fmt.Sprintf("%d parts, %s to %s", s.Parts, first, last)
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s\nmodel: %s, attempt: %s, payload: %s\n", s.Queue, text, s.ModelName, s.AttemptName, s.Payload)
	if err == nil && s.NewErrorAbove != (store.Config{}).WithDefaults().NewErrorAbove {
		_, err = fmt.Fprintf(a.stdout, "new fingerprints: operators are notified above %d models; 0: never\n", s.NewErrorAbove)
	}
	return err
}

// queueNames is the flag --queue: one name, or several with commas between them. Giving it again adds to them.
type queueNames struct {
	names []string // never empty
	given bool     // they are no default any more
}

func (q *queueNames) Set(text string) error {
	if !q.given {
		q.names, q.given = nil, true
	}
	for name := range strings.SplitSeq(text, ",") {
		q.names = append(q.names, strings.TrimSpace(name))
	}
	return nil
}

func (q *queueNames) String() string { return strings.Join(q.names, ",") }

func (q *queueNames) Type() string { return "names" }

func (q *queueNames) several() bool { return len(q.names) > 1 }

func (a *app) useQueues() error {
	a.store.Queue = a.queues.names[0]
	if sorted := slices.Sorted(slices.Values(a.queues.names)); len(slices.Compact(sorted)) < len(a.queues.names) {
		return usagef("--queue: expected each queue once, found %s", &a.queues)
	}
	return nil
}

func (a *app) requireOneQueue() error {
	if a.queues.several() {
		return usagef("--queue: expected one queue, as only daemons and up serve several, found %s", &a.queues)
	}
	return nil
}

// eachQueue calls do with each queue as soon as Redis answers, side by side, until ctx ends or do fails. It retries a queue that cannot be opened,
// without delaying the others.
func (a *app) eachQueue(ctx context.Context, part string, clients *redis.Clients, flags *loopFlags, do func(context.Context, *store.Queue) error) error {
	running, ctx := errgroup.WithContext(ctx)
	for _, name := range a.queues.names {
		running.Go(func() error {
			queue, err := a.awaitQueue(ctx, clients, name, flags)
			switch {
			case ctx.Err() != nil: // before it could begin
				a.logOf(name).Info().Str("part", part).Msg("stopped")
				return nil
			case errors.Is(err, store.ErrUnread):
				return fmt.Errorf("--strict: check redis: %w", err)
			case err != nil:
				return usageError{err}
			}
			if part == "dispatcher" || part == "poller" || part == "up" { // of workers there may be thousands, and each would ask Redis the same
				a.metrics.Queue(queue)
			}
			return do(ctx, queue)
		})
	}
	return running.Wait()
}

// loopName names a loop for the health checks: with several queues each has its own.
func (a *app) loopName(loop, queue string) string {
	if a.queues.several() {
		loop += " " + queue
	}
	return loop
}

func (a *app) logOf(queue string) *zerolog.Logger {
	if !a.queues.several() {
		return &a.log
	}
	return new(a.log.With().Str("queue", queue).Logger())
}
