package dashboard

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// secretTexts has a secret in every text that a worker may send, in every form in which the programs of --exec print them.
var secretTexts = func() (fields []string) {
	forms := []string{"mysql://root:hunter2@db refused", "password=hunter2", "Authorization: Bearer hunter2"}
	for i, name := range []string{"reason", "error_type", "user_friendly_reason", "status", "worker", "processing_id", "log"} {
		fields = append(fields, fmt.Sprintf("%q:%q", name, forms[i%len(forms)]))
	}
	return append(fields, `"log_url":"https://ci.example.com/log?token=hunter2"`, `"metrics":{"password=hunter2":1,"rows":2}`)
}()

func TestNoSecretThatWorkSaysIsStoredLoggedOrShown(t *testing.T) {
	d := sit(t, testkit.Redis(t), nil)
	var logged bytes.Buffer
	log := zerolog.New(&logged)
	var err error
	d.poller, err = poller.New(poller.RoomsOf(d.Store), poller.Config{Owner: "poller-1", Tick: 50 * time.Millisecond, Lease: time.Hour, Clock: d.Clock.Now, Log: &log})
	must(t, err)
	for _, uid := range []string{"retried", "final", "well", "postponed", "interrupted"} {
		d.put(`"uid":"` + uid + `","labels":{"owner":"ann"},"refresh":"now","policy":{"timeout":"1h","retries":["1h"]}`)
	}
	failIf(t, len(d.Scores(d.Store.Keys.Due))+len(d.Scores(d.Store.Keys.Urgent)) != 5, "expected five models, found %v", d.List(d.Store.Keys.Rejected))
	d.start()
	say := func(kind, uid string, fields ...string) { d.answer(kind, uid, append(fields, secretTexts...)...) }
	for _, uid := range []string{"retried", "final", "well", "postponed", "interrupted"} {
		say("started", uid)
		say("user_friendly_status", uid)
		expectNone(t, d.page(home+"model?uid="+uid), "hunter2")
	}
	expect(t, d.page(home+"running"), "***")
	say("failure", "retried")
	say("failure", "final", `"retryable":false`)
	say("success", "well")
	say("postponed", "postponed", `"retry_after":60`)
	say("interrupted", "interrupted")

	expectNone(t, logged.String(), "hunter2")
	expect(t, logged.String(), "final failure", "***")
	for key, value := range d.Server.Dump(t) {
		failIf(t, strings.Contains(key+fmt.Sprint(value.Data), "hunter2"), "expected no secret in %s, found %v", key, value.Data)
	}
	for _, path := range []string{"", "models", "running", "failures", "journal", "audit", "rejected", "model?uid=retried", "model?uid=final", "model?uid=well"} {
		expectNone(t, d.page(home+path), "hunter2")
	}
	expect(t, d.page(home+"model?uid=final"), "mysql://***@db refused")
}

// What is rejected stays as its sender wrote it, to be requeued; what is written about it has no secret.
func TestNoSecretStandsInTheReasonOfARejectedMessageNorOnItsPage(t *testing.T) {
	d := sit(t, testkit.Redis(t), nil)
	var logged bytes.Buffer
	log := zerolog.New(&logged)
	var err error
	d.poller, err = poller.New(poller.RoomsOf(d.Store), poller.Config{Owner: "poller-1", Tick: 50 * time.Millisecond, Lease: time.Hour, Clock: d.Clock.Now, Log: &log})
	must(t, err)
	d.put(`"uid":"a"`)
	unread := []string{
		fixture.Result("password=hunter2", "a", "u"), "mysql://root:hunter2@db", strings.Repeat("x", 45) + " mysql://root:hunter2" + strings.Repeat("y", 60) + "@db",
		fixture.Result("ready", "a", "u", `"reply_to":"password=hunter2"`),
	}
	d.Say(unread...)
	d.apply()
	entries := check.Got(outbox.Of(d.Store).Rejected(t.Context()))(t)
	failIf(t, len(entries) != len(unread), "expected %d rejected messages, found %d", len(unread), len(entries))
	for i, entry := range entries {
		raw, err := entry.Message()
		failIf(t, err != nil || raw != unread[i], "expected the message %q as it came, found %q, %v", unread[i], raw, err)
		failIf(t, strings.Contains(entry.Reason, "hunter"), "expected a reason without the secret, found %q", entry.Reason)
	}
	expectNone(t, logged.String(), "hunter")
	expectNone(t, d.page(home+"rejected"), "hunter")
}
