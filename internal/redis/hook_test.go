package redis

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// insisting is a context that repeats at once, and gives up with the error of the third try.
func insisting(ctx context.Context) context.Context {
	return WithRetry(ctx, func(context.Context) func(error) error {
		tries := 0
		return func(err error) error {
			if tries++; tries == 3 {
				return err
			}
			return nil
		}
	})
}

func TestAClientRepeatsWhatOnlyReadsOrIsAScript(t *testing.T) {
	lost := errors.New("i/o timeout")
	get := func(ctx context.Context, client *goredis.Client) error { return client.Get(ctx, "k").Err() }
	run := func(ctx context.Context, client *goredis.Client) error {
		return client.EvalSha(ctx, "abc", []string{"k"}).Err()
	}
	load := func(ctx context.Context, client *goredis.Client) error {
		return client.ScriptLoad(ctx, "return 1").Err()
	}
	both := func(ctx context.Context, client *goredis.Client) error {
		pipe := client.Pipeline()
		pipe.Get(ctx, "k")
		pipe.Get(ctx, "l")
		return ExecReads(ctx, pipe)
	}
	for name, test := range map[string]struct {
		writes, insists bool
		call            func(context.Context, *goredis.Client) error
		answers         []error // the last one for ever
		calls           int
		want            error
	}{
		"a read":                        {false, true, get, []error{lost, nil}, 2, nil},
		"a read that is refused":        {false, true, get, []error{redisError("NOPERM no")}, 1, redisError("NOPERM no")},
		"a read, and nobody insists":    {false, false, get, []error{lost}, 1, lost},
		"a read that is given up":       {false, true, get, []error{lost}, 3, lost},
		"a script":                      {true, true, run, []error{lost, nil}, 2, nil},
		"a script that is loaded":       {true, true, load, []error{lost, nil}, 2, nil},
		"another command of a writer":   {true, true, get, []error{lost}, 1, lost},
		"two reads":                     {false, true, both, []error{lost, nil}, 4, nil},
		"two reads, the second is lost": {false, true, both, []error{goredis.Nil, lost, nil}, 4, nil},
		"two reads, and nobody insists": {false, false, both, []error{lost}, 2, lost},
		"two reads, given up":           {false, true, both, []error{lost}, 6, lost},
		"two commands of a writer":      {true, true, both, []error{lost}, 2, lost},
	} {
		client, calls := noServer(t), 0
		client.AddHook(RetryHook{Writes: test.writes})
		client.AddHook(answering(func(goredis.Cmder) error {
			calls++
			return test.answers[min(calls, len(test.answers))-1]
		}))
		ctx := t.Context()
		if test.insists {
			ctx = insisting(ctx)
		}
		err := test.call(ctx, client)
		failIf(t, (err == nil) != (test.want == nil) || err != nil && err.Error() != test.want.Error() || calls != test.calls,
			"%s: got %v after %d calls, want %v after %d", name, err, calls, test.want, test.calls)
	}
}

// answeringAll is the address of a server that answers each connection with a text.
func answeringAll(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-ended })
	return listener.Addr().String()
}

func TestAWrongSchemeIsHintedAtOnlyIfTheServerSpeaksTheOther(t *testing.T) {
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that the client ends
	secure.StartTLS()
	t.Cleanup(secure.Close)
	tls := secure.Listener.Addr().String()
	pong, refused, other := answeringAll(t, "+PONG\r\n"), answeringAll(t, "-NOAUTH\r\n"), answeringAll(t, "HTTP/1.1 400\r\n")
	lost := errors.New("i/o timeout")
	for name, test := range map[string]struct {
		address string
		err     error
		hint    string
	}{
		"TLS, the server has none":    {"rediss://" + pong, lost, "; the server does not speak TLS there: try redis://"},
		"TLS, and it asks for a name": {"rediss://" + refused, lost, "; the server does not speak TLS there: try redis://"},
		"TLS, and it is no Redis":     {"rediss://" + other, lost, ""},
		"no TLS, the server has it":   {"redis://" + tls, lost, "; the server speaks TLS there: try rediss://"},
		"no TLS, and it has none":     {"redis://" + pong, lost, ""},
		"the server has answered":     {"rediss://" + pong, redisError("NOAUTH"), ""},
		"nobody is there":             {"rediss://127.0.0.1:1", lost, ""},
		"a socket":                    {"unix:///tmp/none.sock", lost, ""},
	} {
		got := connect(t, test.address, ConnectOptions{}).SchemeHint(t.Context(), test.err)
		failIf(t, got != test.hint, "%s: got %q, want %q", name, got, test.hint)
	}
}
