package dashboard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
)

// failing lets the n-th call of Redis fail, and counts them. It is used by one request at a time.
type failing struct {
	nth, calls int    // nth 0: none fails
	failed     string // the call that has failed
}

var errBroken = errors.New("connection broken")

func (f *failing) next(call string) error {
	if f.calls++; f.calls == f.nth {
		f.failed = call
		return errBroken
	}
	return nil
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if err := f.next(fmt.Sprint(command.Args())); err != nil {
			command.SetErr(err)
			return err
		}
		return next(ctx, command)
	}
}

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if err := f.next(fmt.Sprint(len(commands), commands[0].Args())); err != nil {
			for _, command := range commands {
				command.SetErr(err)
			}
			return err
		}
		return next(ctx, commands)
	}
}

// Whichever call of Redis fails, a page is an error page: it never shows numbers of which some are missing.
func TestAPageOfWhichACallOfRedisFailsIsAnErrorPage(t *testing.T) {
	q := fixture.New(t, testkit.Miniredis(t))
	f := &failing{}
	client := q.Server.Client(t)
	d := sitAt(t, q, "", client, nil)
	client.AddHook(f)
	d.put(`"uid":"a","refresh":"now","labels":{"tenant":"t1"},"policy":{"timeout":"1h","retries":["1h"],"limits":[{"key":"{label.tenant}","running":1}]}`, `"uid":"b"`,
		`"uid":"held","refresh":"now"`)
	p := policy.Default()
	p.Name = "p"
	if err := q.Store.Fleet().PutPolicy(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	d.press(home+"hold/put", "id", "h1", "selector", "uid=held", "reason", "why")
	d.press(home+"circuit/open", "key", "host=a")
	d.press(home+"limit/set", "key", "host=a", "running", "3")
	d.start()
	d.answer("failure", "a", `"reason":"503"`, `"error_type":"http_503"`)
	d.put(`"uid":"again","refresh":"now","labels":{"tenant":"t1"}`)
	for _, path := range []string{
		"", "models", "models?sort=failing", "models?sort=due", "models?l=status%3Dfailing", "model?uid=a", "model?uid=held", "failures", "steering", "steering?keys=all",
		"steering?key=host%3Da", "rejected", "policies", "policy?name=p", "playground", "model/past.svg?uid=a", "model/next.svg?uid=a",
	} {
		whole := d.page(home + path) // and policies are remembered
		*f = failing{}
		d.page(home + path)
		calls := f.calls
		if calls == 0 && !strings.HasPrefix(path, "playground") {
			t.Errorf("%s: expected calls of Redis, found none", path)
		}
		for n := 1; n <= calls; n++ {
			*f = failing{nth: n}
			status, text := d.status(home + path)
			if status != 503 || !strings.Contains(text, errBroken.Error()) {
				t.Errorf("%s: expected an error page when call %d of %d fails, %.100s, found %d", path, n, calls, f.failed, status)
			}
		}
		*f = failing{}
		if again := d.page(home + path); len(again) != len(whole) {
			t.Errorf("%s: expected the page as it was", path)
		}
	}
}

// Whichever call of Redis fails, an action says so instead of what it would have done.
func TestAnActionOfWhichACallOfRedisFailsSaysSo(t *testing.T) {
	for _, action := range []struct {
		path   string
		fields []string
	}{
		{"hold/put", []string{"id", "h1", "selector", "uid=a", "reason", "why"}}, {"hold/release", []string{"id", "h0"}},
		{"limit/set", []string{"key", "host=a", "running", "3"}}, {"limit/rm", []string{"key", "host=b"}},
		{"circuit/open", []string{"key", "host=a"}}, {"circuit/open", []string{"key", "queue"}}, {"circuit/close", []string{"key", "host=b"}},
		{"model/run", []string{"uid", "a"}}, {"model/disable", []string{"uid", "a"}}, {"model/enable", []string{"uid", "a"}},
	} {
		for n, calls := 0, 1; n <= calls; n++ {
			t.Run(fmt.Sprint(action.path, " ", n), func(t *testing.T) {
				q := fixture.New(t, testkit.Miniredis(t))
				f := &failing{}
				client := q.Server.Client(t)
				d := sitAt(t, q, "", client, nil)
				d.put(`"uid":"a"`)
				d.press(home+"hold/put", "id", "h0", "selector", "uid=none", "reason", "why")
				d.press(home+"limit/set", "key", "host=b", "running", "3")
				d.press(home+"circuit/open", "key", "host=b")
				client.AddHook(f)
				f.nth = n
				told := d.flashOf(home+action.path, action.fields...)
				if failed := strings.Contains(told, errBroken.Error()); failed != (n > 0) {
					t.Errorf("expected a failure: %t, found %s", n > 0, told)
				}
				if n == 0 {
					calls = f.calls
				}
			})
		}
	}
}

// flashOf presses a button, and returns the message that the next page would show.
func (d *visitor) flashOf(path string, fields ...string) string {
	d.t.Helper()
	response, _ := d.post(path, fields...)
	_, id, _ := strings.Cut(response.Header.Get("Location"), "flash=")
	if one := d.dashboard.flashes.take(id); one != nil {
		return one.Text
	}
	d.t.Fatalf("%s: expected a message", path)
	return ""
}
