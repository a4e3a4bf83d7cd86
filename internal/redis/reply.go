package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// RunTimed runs a script that answers with the clock and n more values.
func RunTimed(
	ctx context.Context, client goredis.UniversalClient, script *goredis.Script, n int, keys []string, args ...any,
) (now time.Time, more []any, err error) {
	reply, err := RunScript(ctx, client, script, keys, args...).Slice()
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

// WrongType returns the text of an error about a key of the wrong type; false: it is another error.
func WrongType(err error) (text string, is bool) {
	if !goredis.HasErrorPrefix(err, "WRONGTYPE") {
		return "", false
	}
	return err.Error(), true
}

// IgnoreWrongType drops an error about a key of the wrong type.
func IgnoreWrongType(err error) error {
	if _, wrong := WrongType(err); wrong {
		return nil
	}
	return err
}

// Wrap adds the failed action to an error; nil stays nil.
func Wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Text is a reply that is a text; anything else is empty.
func Text(reply any) string {
	value, _ := reply.(string)
	return value
}

// Texts is a reply that is a list of texts; anything else is empty.
func Texts(reply any) []string {
	values, _ := reply.([]any)
	return Map(values, Text)
}

// Map converts each item, in order.
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
	goredis.Cmder
	Val() V
}](ctx context.Context, client goredis.UniversalClient, doing string, items []I, ask func(pipe goredis.Pipeliner, item I) C) ([]V, error) {
	pipe := client.Pipeline()
	replies := Map(items, func(item I) C { return ask(pipe, item) })
	err := ExecReads(ctx, pipe)
	return Map(replies, C.Val), Wrap(err, doing)
}

// ExecReads runs a pipeline in which a key of the wrong type, or none, harms only its own reply.
func ExecReads(ctx context.Context, pipe goredis.Pipeliner) error {
	_, err := ExecTyped(ctx, pipe)
	return err
}

// ExecTyped is ExecReads, and returns the first error about a key of the wrong type; nil: there is none.
func ExecTyped(ctx context.Context, pipe goredis.Pipeliner) (wrong, err error) {
	commands, err := pipe.Exec(ctx) // its error is the first one only, and may be a harmless one before a lost connection
	if len(commands) == 0 {
		return nil, err
	}
	for _, command := range commands {
		switch err := command.Err(); {
		case err == nil || Missing(err):
		case goredis.HasErrorPrefix(err, "WRONGTYPE"):
			wrong = cmp.Or(wrong, err)
		default:
			return wrong, err
		}
	}
	return wrong, nil
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
	_, is := errors.AsType[goredis.Error](err)
	return is
}

// ParseInt is a whole number; any other text counts for nothing.
func ParseInt(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// IgnoreMissing is the error unless it says that there is none.
func IgnoreMissing(err error) error {
	if Missing(err) {
		return nil
	}
	return err
}

// Missing reports the reply of Redis for "there is none".
func Missing(err error) bool { return errors.Is(err, goredis.Nil) }
