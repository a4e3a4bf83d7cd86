package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// The first failure is told, then the final one, and at last the recovery: in order, from the worker's words to the webhook.
// hook serves a webhook, and gives its address.
func hook(t *testing.T, got chan<- map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var message struct{ Data map[string]string }
		_ = json.Unmarshal(body, &message)
		got <- message.Data
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestUpTellsTheOwnerOfAFailureTheEndAndTheRecovery(t *testing.T) {
	t.Parallel()
	got := make(chan map[string]string, 10)
	well := filepath.Join(t.TempDir(), "well")
	secret := file(t, "secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	routes := file(t, "routes.yaml", "channels:\n  ops: {webhook: "+hook(t, got)+", secret: {file: "+secret+"}, digest: none}\n"+
		"routes:\n- {events: [disabled, recovered, failing], models: tenant=t1, channels: [ops]}\n")
	models := file(t, "models.yaml", "uid: a\nlabels: {tenant: t1}\npolicy: {timeout: 1m, retries: [0], on_exhausted: give_up, failing_from: 1}\n")
	c := &console{t: t}
	up := c.start("up", "-o", "json", "--tick", "20ms", "--models", models, "--routes", routes, "--dashboard-url", "https://refreshd.example.com/", "--exec", "sh", "--", "-c", "test -e "+well)
	var hint struct{ Redis string }
	if err := json.Unmarshal([]byte(up.line(t, "redis")), &hint); err != nil {
		t.Fatal(err)
	}
	up.line(t, `"uid":"a"`)
	for _, want := range []string{"failing", "disabled"} {
		if told := testkit.Await(t, got, want); told["event"] != want || told["uid"] != "a" || told["reason"] == "" || told["link"] != "https://refreshd.example.com/q/bigtables/model?uid=a" {
			t.Errorf("told %v, want %s", told, want)
		}
	}
	if err := os.WriteFile(well, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.do("--redis", hint.Redis, "model", "enable", "a") // which starts a one-shot at once
	if told := testkit.Await(t, got, "recovered"); told["event"] != "recovered" || told["uid"] != "a" {
		t.Errorf("told %v, want the recovery", told)
	}
	if code := up.stop(); code != exitDone {
		t.Errorf("it ended with %d: %s", code, up.stderr)
	}
}

func TestAProgramOfUpDoesNotFindTheSecretsOfTheNotifier(t *testing.T) {
	t.Parallel()
	got := make(chan map[string]string, 10)
	routes := file(t, "routes.yaml", "channels:\n  ops: {webhook: "+hook(t, got)+", secret: {env: HOOK_KEY}, digest: none}\nroutes:\n- {events: [failing], channels: [ops]}\n")
	models := file(t, "models.yaml", "uid: a\npolicy: {timeout: 1m, retries: [0], on_exhausted: give_up, failing_from: 1}\n")
	up := exec.Command(testkit.Binary(t), "up", "--tick", "20ms", "--models", models, "--routes", routes, "--exec", "sh", "--", "-c", `echo "$OWN ${HOOK_KEY:-nothing}" >&2; exit 1`)
	up.Env = append(os.Environ(), "OWN=found", "HOOK_KEY=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	testkit.StartCommand(t, up)
	if told := testkit.Await(t, got, "the failure"); told["reason"] != "found nothing" {
		t.Errorf("expected the other variable alone, found %v", told)
	}
}
