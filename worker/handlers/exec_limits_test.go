//go:build unix

package handlers

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/worker"
)

// runShell runs a script for one attempt and returns its error.
func runShell(t *testing.T, script string, options ExecOptions) error {
	t.Helper()
	return shell(t, script, options)(t.Context(), &worker.Attempt{UID: "m", AttemptUID: "a1", Payload: json.RawMessage(`{"n":1}`)})
}

func TestAProgramDoesNotInheritTheSettingsOfRefreshd(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://:geheim@127.0.0.1")
	t.Setenv("REFRESHD_REDIS", "redis://:geheim@127.0.0.1")
	t.Setenv("REFRESHD_HTTP_HEADER", "Authorization: geheim")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=geheim")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=geheim")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	t.Setenv("OWN", "yes")
	var out bytes.Buffer
	must(t, runShell(t, `env`, ExecOptions{Stdout: &out}))
	text := out.String()
	if strings.Contains(text, "geheim") || !strings.Contains(text, "OWN=yes") || !strings.Contains(text, "OTEL_EXPORTER_OTLP_ENDPOINT=http") || !strings.Contains(text, "REFRESHD_UID=m\n") || !strings.Contains(text, "REFRESHD_PAYLOAD_N=1") {
		t.Errorf("want the environment without secrets, got\n%s", text)
	}
}

func TestOfTheOutputOfAProgramNoMoreThanTheMostIsPassedOn(t *testing.T) {
	var out, errs bytes.Buffer
	err := runShell(t, `head -c 10000000 /dev/zero | tr '\0' x; head -c 3000000 /dev/zero | tr '\0' y >&2; echo; echo why >&2; exit 1`,
		ExecOptions{Stdout: &out, Stderr: &errs, MaxOutput: 1000})
	failIf(t, err == nil || !strings.HasSuffix(err.Error(), "y") && !strings.HasSuffix(err.Error(), "why"), "want the reason, got %.50q", err)
	const note = "\n[more output is dropped]\n"
	if want := strings.Repeat("x", 1000) + note; out.String() != want {
		t.Errorf("stdout: want 1000 bytes and a note, got %d", out.Len())
	}
	if want := strings.Repeat("y", 1000) + note; errs.String() != want {
		t.Errorf("stderr: want 1000 bytes and a note, got %d", errs.Len())
	}
}

func TestOutputThatJustFitsIsPassedOnWithoutANote(t *testing.T) {
	var out bytes.Buffer
	c := &capped{next: &out, left: 6}
	for _, part := range []string{"abc", "def", ""} {
		if n, err := io.WriteString(c, part); n != len(part) || err != nil {
			t.Fatalf("%q: %d, %v", part, n, err)
		}
	}
	if out.String() != "abcdef" {
		t.Errorf("want all of it and no note, got %q", out.String())
	}
	_, _ = io.WriteString(c, "g")
	_, _ = io.WriteString(c, "h")
	if want := "abcdef\n[more output is dropped]\n"; out.String() != want {
		t.Errorf("want %q, got %q", want, out.String())
	}
}
