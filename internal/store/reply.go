package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// runTimed runs a script that answers with the clock and n more values.
func runTimed(
	ctx context.Context, client redis.UniversalClient, script *redis.Script, n int, keys []string, args ...any,
) (now time.Time, more []any, err error) {
	reply, err := Run(ctx, client, script, keys, args...).Slice()
	if err == nil && len(reply) != n+1 {
		err = fmt.Errorf("expected %d values, found %d", n+1, len(reply))
	}
	if err != nil {
		return now, nil, err
	}
	ms, err := strconv.ParseInt(Text(reply[0]), 10, 64)
	if err != nil {
		return now, nil, fmt.Errorf("expected Unix milliseconds, found %q", Text(reply[0]))
	}
	return time.UnixMilli(ms).UTC(), reply[1:], nil
}

// Misfit tells of an error which key is of another type than it should be; false: it is another error.
func Misfit(err error) (text string, is bool) {
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return "", false
	}
	return err.Error(), true
}

// ignoreMisfit is the error unless it tells of a key of another type.
func ignoreMisfit(err error) error {
	if _, misfit := Misfit(err); misfit {
		return nil
	}
	return err
}

// Wrap says what failed; nil: nothing did.
func Wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// parseScore reads a score of the due or running set. A person can write any number there; one that is no whole number, or
// never comes, must not stop the queue.
func parseScore(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("expected a score, found %q", text)
	case ms > maxScore:
		return time.Time{}, nil
	}
	return time.UnixMilli(int64(ms)).UTC(), nil
}

// maxScore is above every instant that a Go program can format.
const maxScore = 253402300799999 // the end of the year 9999

// Text is a reply that is a text; anything else is empty.
func Text(reply any) string {
	value, _ := reply.(string)
	return value
}

func texts(reply any) []string {
	values, _ := reply.([]any)
	return Map(values, Text)
}

// anys are texts as arguments of a command.
func anys(texts []string) []any { return Map(texts, func(text string) any { return text }) }

// Map returns what is made of each item, in order: of a command that is put into a pipeline the reply to come.
func Map[I, O any](items []I, do func(item I) O) []O {
	made := make([]O, len(items))
	for i, item := range items {
		made[i] = do(item)
	}
	return made
}

// ReadEach reads something of each item in one pipeline, in order. Of a key of the wrong type, or where there is none, it is nothing; with an
// error, which says what it was doing, that may be so of all.
func ReadEach[I, V any, C interface {
	redis.Cmder
	Val() V
}](ctx context.Context, client redis.UniversalClient, doing string, items []I, ask func(pipe redis.Pipeliner, item I) C) ([]V, error) {
	pipe := client.Pipeline()
	replies := Map(items, func(item I) C { return ask(pipe, item) })
	err := ExecReads(ctx, pipe)
	return Map(replies, C.Val), Wrap(err, doing)
}

// ExecReads runs a pipeline in which a key of the wrong type, or none, harms only its own reply.
func ExecReads(ctx context.Context, pipe redis.Pipeliner) error {
	_, err := execMisfits(ctx, pipe)
	return err
}

// execMisfits is ExecReads, and tells of the first key of the wrong type; nil: there is none.
func execMisfits(ctx context.Context, pipe redis.Pipeliner) (misfit, err error) {
	commands, err := pipe.Exec(ctx) // its error is the first one only, and may be a harmless one before a lost connection
	if len(commands) == 0 {
		return nil, err
	}
	for _, command := range commands {
		switch err := command.Err(); {
		case err == nil || Missing(err):
		case redis.HasErrorPrefix(err, "WRONGTYPE"):
			misfit = cmp.Or(misfit, err)
		default:
			return misfit, err
		}
	}
	return misfit, nil
}

// Refused reports whether Redis answered that this user may not do it, or not within a script.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "NOPERM") || strings.Contains(text, "user executing the script") || strings.Contains(text, "ACL failure in script")
}

// Answered reports whether an error is an answer of Redis, not the lack of one.
func Answered(err error) bool {
	_, is := errors.AsType[redis.Error](err)
	return is
}

func parseInt(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // what is no number counts for nothing
	return n
}
