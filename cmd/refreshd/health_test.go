package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestHealthSaysWhetherADaemonIsWellAndWhyNot(t *testing.T) {
	t.Parallel()
	server, address := testkit.Miniredis(t), testkit.FreeAddress(t)
	c := at(t, server)
	dispatcher := c.start("dispatcher", "--health", address)
	testkit.Eventually(t, "the dispatcher is ready", func() bool {
		code, _, _ := c.run("health", address)
		return code == exitDone
	})
	for _, url := range []string{address, "http://" + address, "http://" + address + "/livez", "http://" + address + "/readyz"} {
		expectContains(t, c.do("health", url), "status  ok")
	}
	if report := c.object("health", address); report["status"] != "ok" || len(report["loops"].([]any)) != 1 {
		t.Errorf("expected a loop that is well, found %v", report)
	}
	as := at(t, server)
	as.env["REFRESHD_HEALTH"] = address // as the daemon may have it
	as.do("health")
	as.do("health", "/livez")
	dispatcher.stop()
	expectContains(t, as.fail(exitFailed, "health"), "ask for health: ", "connection refused")
}

func TestHealthFailsByWhatItIsToldOrNotTold(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"not ready":          {503, `{"status":"failing","why":"poller: stuck\u001b[2J","loops":[]}`, "/readyz: poller: stuck"},
		"not ready, no why":  {503, `{"status":"failing"}`, "it does not say why"},
		"another service":    {200, `<html>`, "expected the report of a daemon, found 200 OK"},
		"elsewhere":          {302, `{"status":"ok"}`, "found 302"},
		"a contradiction":    {503, `{"status":"ok"}`, "found 503"},
		"not what it serves": {404, "expected /livez or /readyz", "found 404"},
	} {
		t.Run(name, func(t *testing.T) {
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer service.Close()
			told := (&console{t: t}).fail(exitFailed, "health", service.URL)
			expectContains(t, told, test.want)
			if plain(told[:len(told)-1]) != told[:len(told)-1] {
				t.Errorf("expected words without control characters, found %q", told)
			}
		})
	}
}

func TestHealthDoesNotWaitForLong(t *testing.T) {
	released := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer service.Close()
	defer close(released)
	expectContains(t, (&console{t: t}).fail(exitFailed, "health", service.URL, "--health-timeout", "10ms"), "deadline exceeded")
}

func TestTheAddressOfHealthMayBeShort(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8080":           "http://127.0.0.1:8080/readyz",
		":8080":                    "http://127.0.0.1:8080/readyz",
		"0.0.0.0:8080/livez":       "http://127.0.0.1:8080/livez",
		"[::]:8080":                "http://127.0.0.1:8080/readyz",
		"[::1]:8080/livez":         "http://[::1]:8080/livez",
		"https://host:8080/readyz": "https://host:8080/readyz",
		"http://host/":             "http://host/readyz",
	} {
		if got, err := healthURL(address); got != want || err != nil {
			t.Errorf("%s: expected %s, found %s, %v", address, want, got, err)
		}
	}
}
