// Package operate carries out what an operator asks of a queue. Each verb is written once: it reads texts as typed, refuses with the name of the
// wrong field, and returns a result with JSON tags. The command line and the dashboard call it.
package operate

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Operator asks something of a queue.
type Operator struct {
	Queue *store.Queue
	By    string // for the journal; empty: unknown
	From  string // the program and its host, or the browser
	// Untold is called for each part in which what is done cannot be kept, with why; nil: nobody listens.
	Untold func(key string, err error)
}

// Acting returns a context whose changes are one deed of an operator.
func Acting(ctx context.Context, o Operator) context.Context {
	return store.WithActor(ctx, store.NewActor(store.Actor{ID: store.Letters(), By: o.By, From: o.From, Untold: o.Untold}))
}

// Refusal is the error of a request that is wrong whatever the queue holds. Mostly it wraps a *document.Error, which names the field.
type Refusal struct{ error }

func (r Refusal) Unwrap() error { return r.error }

func refuse(field, want, found string) error { return Refusal{document.Refuse(field, want, found)} }

func refusef(format string, values ...any) error { return Refusal{fmt.Errorf(format, values...)} }

func refused(err error) error {
	if err == nil {
		return nil
	}
	return Refusal{err}
}

// refusedAt refuses a field.
func refusedAt(field string, err error) error { return refused(document.Place(err, field)) }

// readLength reads a duration from least to most; want describes the range.
func readLength(field, text string, least, most time.Duration, want string) (time.Duration, error) {
	length, err := document.ParseDuration(text)
	if err == nil && (length < least || length > most) {
		err = document.Refuse("", want, document.Found(text))
	}
	return length, refusedAt(field, err)
}

// requireNamed refuses a name of nothing.
func requireNamed(is bool, err error, name, want string) error {
	if err == nil && !is {
		err = fmt.Errorf("%s: expected %s, found none of that name", document.OneLine(name), want)
	}
	return err
}

// ReadBy checks the name of who asks.
func ReadBy(text string) (string, error) {
	if text != document.Shorten(text, model.MaxBy) {
		return "", refuse("by", fmt.Sprintf("at most %d bytes on one line", model.MaxBy), document.Found(text))
	}
	return text, nil
}

// Ending is when something ends: at a time, after a duration, or either. All empty: when somebody ends it.
type Ending struct {
	Until string // RFC 3339
	For   string // a length of time
	End   string // one or the other
}

// at returns the end of something that begins at now; zero: none.
func (e Ending) at(now time.Time) (time.Time, error) {
	if e.Until != "" && e.For != "" {
		return time.Time{}, refuse("until", "it or `for`", "both")
	}
	for _, length := range []string{e.For, e.End} {
		if duration, err := document.ParseDuration(length); length != "" && err == nil && duration > 0 {
			return now.Add(duration), nil
		}
	}
	field, text, want := "until", e.Until, "an RFC 3339 time after "+model.FormatTime(now)
	switch {
	case e.For != "":
		return time.Time{}, refuse("for", "a length of time such as 2h", document.Found(e.For))
	case e.End != "":
		field, text, want = "end", e.End, "a length of time such as 2h, or "+want
	case e.Until == "":
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !at.After(now) {
		return at, refuse(field, want, document.Found(text))
	}
	return at.UTC().Truncate(time.Millisecond), nil
}

// RetryFor is how long calls are repeated while Redis does not answer: longer than a fail-over takes, or most loads of a snapshot.
const RetryFor = 2 * time.Minute

// WithRetry returns a context in which a call is repeated, for a time, if Redis does not answer, see redis.WithRetry. The error of the first call
// that is given up ends with then; later calls are not repeated.
func WithRetry(ctx context.Context, patience time.Duration, log *zerolog.Logger, then string) context.Context {
	var gone atomic.Bool // later calls do not wait again
	return redis.WithRetry(ctx, func(ctx context.Context) func(error) error {
		left, stop := context.WithTimeout(ctx, patience)
		retry := backoff.New(backoff.Config{Part: "redis", What: "a call", First: 100 * time.Millisecond, Max: 5 * time.Second, Log: log})
		return func(err error) error {
			if err != nil && gone.Load() {
				stop()
				return err
			}
			backoff.Rest(left, retry.After(err), nil)
			if err != nil && left.Err() == nil {
				return nil
			}
			if stop(); err != nil && ctx.Err() == nil {
				gone.Store(true)
				err = fmt.Errorf("%w; asked again for %s%s", err, document.FormatDuration(patience), then)
			}
			return err
		}
	})
}
