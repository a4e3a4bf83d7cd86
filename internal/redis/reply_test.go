package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// answers is a client of no server, to which each command is answered by a function.
func answers(t *testing.T, answer func(command goredis.Cmder) error) goredis.UniversalClient {
	t.Helper()
	client := noServer(t)
	client.AddHook(answering(answer))
	return client
}

func noServer(t *testing.T) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:0"})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

type answering func(goredis.Cmder) error

func (a answering) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (a answering) ProcessHook(goredis.ProcessHook) goredis.ProcessHook {
	return func(_ context.Context, command goredis.Cmder) error {
		command.SetErr(a(command))
		return command.Err()
	}
}

func (a answering) ProcessPipelineHook(goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(_ context.Context, commands []goredis.Cmder) (first error) {
		for _, command := range commands {
			command.SetErr(a(command))
			if first == nil {
				first = command.Err()
			}
		}
		return first
	}
}

func TestAScriptThatAnswersWithTheClockIsReadOrRefused(t *testing.T) {
	script := goredis.NewScript("return 1")
	lost := errors.New("i/o timeout")
	at := time.UnixMilli(1_700_000_000_123).UTC()
	for name, test := range map[string]struct {
		reply []any
		err   error
		more  []any
		fails string
	}{
		"the clock and two":    {[]any{"1700000000123", "a", int64(2)}, nil, []any{"a", int64(2)}, ""},
		"one too few":          {[]any{"1700000000123", "a"}, nil, nil, "expected 3 values, found 2"},
		"one too many":         {[]any{"1700000000123", "a", "b", "c"}, nil, nil, "expected 3 values, found 4"},
		"no clock":             {[]any{"soon", "a", "b"}, nil, nil, `expected Unix milliseconds, found "soon"`},
		"a clock of no text":   {[]any{int64(1), "a", "b"}, nil, nil, `expected Unix milliseconds, found ""`},
		"an error of the call": {nil, lost, nil, "i/o timeout"},
	} {
		client := answers(t, func(command goredis.Cmder) error {
			command.(*goredis.Cmd).SetVal(test.reply)
			return test.err
		})
		now, more, err := RunTimed(t.Context(), client, script, 2, []string{"k"})
		if test.fails != "" {
			failIf(t, err == nil || err.Error() != test.fails || more != nil || !now.IsZero(), "%s: got %s, %v, %v", name, now, more, err)
			continue
		}
		failIf(t, err != nil || !now.Equal(at) || now.Location() != time.UTC, "%s: got %s, %v", name, now, err)
		expectEqual(t, name, test.more, more)
	}
}

func TestAKeyOfTheWrongTypeOrNoneHarmsOnlyItsOwnReply(t *testing.T) {
	wrong, lost := redisError("WRONGTYPE Operation against a key"), errors.New("i/o timeout")
	for name, test := range map[string]struct {
		answers    []error
		wrong, err error
	}{
		"all answer":           {[]error{nil, nil}, nil, nil},
		"one is missing":       {[]error{goredis.Nil, nil}, nil, nil},
		"one is of another":    {[]error{nil, wrong}, wrong, nil},
		"lost behind missing":  {[]error{goredis.Nil, lost}, nil, lost},
		"lost behind the type": {[]error{wrong, lost}, wrong, lost},
		"refused":              {[]error{redisError("NOPERM no"), nil}, nil, redisError("NOPERM no")},
	} {
		n := 0
		client := answers(t, func(goredis.Cmder) error {
			n++
			return test.answers[n-1]
		})
		pipe := client.Pipeline()
		for range test.answers {
			pipe.Get(t.Context(), "k")
		}
		wrong, err := ExecTyped(t.Context(), pipe)
		failIf(t, !errors.Is(wrong, test.wrong) || !errors.Is(err, test.err) || (wrong == nil) != (test.wrong == nil) || (err == nil) != (test.err == nil),
			"%s: got %v, %v, want %v, %v", name, wrong, err, test.wrong, test.err)
		n = 0
		_, err = ReadEach(t.Context(), client, "read it", test.answers, func(pipe goredis.Pipeliner, _ error) *goredis.StringCmd { return pipe.Get(t.Context(), "k") })
		failIf(t, !errors.Is(err, test.err) || err != nil && err.Error() != "read it: "+test.err.Error(), "%s: got %v, want %v", name, err, test.err)
	}
	client := answers(t, func(command goredis.Cmder) error {
		command.(*goredis.StringCmd).SetVal(fmt.Sprint("of ", command.Args()[1]))
		return nil
	})
	got, err := ReadEach(t.Context(), client, "", []string{"a", "b"}, func(pipe goredis.Pipeliner, key string) *goredis.StringCmd { return pipe.Get(t.Context(), key) })
	must(t, err)
	expectEqual(t, "the replies", []string{"of a", "of b"}, got)
	must(t, ExecReads(t.Context(), client.Pipeline()))
}

func TestAnErrorIsKnownByItsKind(t *testing.T) {
	for _, test := range []struct {
		err                               error
		refused, answered, missing, wrong bool
		fault                             bool
	}{
		{},
		{err: goredis.Nil, answered: true, missing: true},
		{err: fmt.Errorf("read: %w", goredis.Nil), answered: true, missing: true},
		{err: redisError("NOPERM this user"), refused: true, answered: true, fault: true},
		{err: redisError("ERR The user executing the script can't"), refused: true, answered: true, fault: true},
		{err: redisError("ERR ACL failure in script: no"), refused: true, answered: true, fault: true},
		{err: redisError("WRONGTYPE a key"), answered: true, wrong: true, fault: true},
		{err: redisError("NOSCRIPT none"), answered: true},
		{err: redisError("NOGROUP none"), answered: true},
		{err: redisError("no such key"), answered: true},
		{err: io.EOF, fault: true},
	} {
		text, wrong := WrongType(test.err)
		failIf(t, wrong != test.wrong || wrong && text != test.err.Error(), "%v: of the wrong type: %q, %t", test.err, text, wrong)
		failIf(t, Refused(test.err) != test.refused, "%v: refused: %t", test.err, !test.refused)
		failIf(t, Answered(test.err) != test.answered, "%v: answered: %t", test.err, !test.answered)
		failIf(t, Missing(test.err) != test.missing, "%v: missing: %t", test.err, !test.missing)
		failIf(t, (IgnoreMissing(test.err) == nil) != (test.err == nil || test.missing), "%v: without missing: %v", test.err, IgnoreMissing(test.err))
		failIf(t, (IgnoreWrongType(test.err) == nil) != (test.err == nil || test.wrong), "%v: without a wrong type: %v", test.err, IgnoreWrongType(test.err))
		failIf(t, (fault(test.err) != nil) != test.fault, "%v: a fault: %t", test.err, !test.fault)
		wrapped := Wrap(test.err, "do it")
		failIf(t, (wrapped == nil) != (test.err == nil) || !errors.Is(wrapped, test.err), "%v: wrapped: %v", test.err, wrapped)
	}
}

func TestAValueIsWrittenAsAnArgumentAndReadFromAReply(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	expectEqual(t, "instants", []string{"", "1700000000123"}, []string{Millis(time.Time{}), Millis(at)})
	expectEqual(t, "numbers", []string{"", "1", "-1"}, []string{Number(0), Number(1), Number(-1)})
	expectEqual(t, "flags", []string{"", "1"}, []string{Flag(false), Flag(true)})
	expectEqual(t, "arguments", []any{"a", "b"}, Anys([]string{"a", "b"}))
	expectEqual(t, "texts", []string{"a", "", ""}, Texts([]any{"a", int64(1), nil}))
	expectEqual(t, "no list", 0, len(Texts("a")))
	expectEqual(t, "whole numbers", []int64{7, -7, 0, 0}, Map([]string{"7", "-7", "", "x"}, ParseInt))
	expectEqual(t, "a pattern", `a\*\?\[\]\\`, EscapeGlob(`a*?[]\`))
}

func TestABlockingCallReportsWhetherAnythingCame(t *testing.T) {
	lost := errors.New("i/o timeout")
	for _, test := range []struct {
		err     error
		arrived bool
		fails   bool
	}{{nil, true, false}, {goredis.Nil, false, false}, {fmt.Errorf("read: %w", errLarge), true, false}, {lost, false, true}} {
		arrived, err := Arrived(test.err, "wait")
		failIf(t, arrived != test.arrived || (err != nil) != test.fails || test.fails && !errors.Is(err, lost), "%v: got %t, %v", test.err, arrived, err)
	}
}
