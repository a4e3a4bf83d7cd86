package handlers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// ExecOptions tunes Exec. The zero value is usable.
type ExecOptions struct {
	// Queue is the name of the queue, in REFRESHD_QUEUE for the program. Defaults to empty: absent.
	Queue string
	// Dir is where the program runs. Defaults to the directory of this process.
	Dir string
	// Env is what the program finds in its environment beside the REFRESHD_ variables, as "name=value". Defaults to the
	// environment of this process without REDIS_URL, its REFRESHD_ variables and the headers for a collector of traces, which are settings
	// of refreshd and hold secrets, and without Secrets. That keeps nobody from looking for them: a program of the same user may read the environment of its parent, where the system lets it.
	Env []string
	// Secrets are the names of further variables that Env leaves out by default. Defaults to none.
	Secrets []string
	// Stdout and Stderr get the output of the program. They must be safe for concurrent use. Default to nothing.
	Stdout, Stderr io.Writer
	// MaxOutput bounds the passed output of an attempt in each of them, in bytes. Defaults to 1 MiB.
	MaxOutput int64
	// Log sends the end of both with the result: it is kept for a while, see worker.Attempt.Log. Defaults to false.
	Log bool
	// KillAfter is the time between SIGTERM and SIGKILL when the work has to end. Defaults to 2 s.
	KillAfter time.Duration
}

func (o ExecOptions) withDefaults() ExecOptions {
	o.KillAfter = cmp.Or(o.KillAfter, 2*time.Second)
	o.MaxOutput = cmp.Or(o.MaxOutput, 1<<20)
	if o.Env == nil {
		o.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
			name, _, _ := strings.Cut(variable, "=")
			return strings.HasPrefix(name, "REFRESHD_") || slices.Contains(settings, name) || slices.Contains(o.Secrets, name)
		})
	}
	if o.Queue != "" {
		o.Env = append(slices.Clip(o.Env), "REFRESHD_QUEUE="+o.Queue)
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	return o
}

// settings of refreshd that may hold a secret, beside its REFRESHD_ variables.
var settings = []string{"REDIS_URL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}

// maxEnv bounds the REFRESHD_PAYLOAD_ variables together, in bytes: a kernel refuses to start a program with too many.
const maxEnv = 128 << 10

// environment renders an attempt as variables. Payload fields that are texts, numbers or booleans become
// REFRESHD_PAYLOAD_NAME, with capital letters and _ for everything else; only the JSON on stdin has the rest, and also
// the second of two that end up with one name, texts with a NUL and what exceeds 128 KiB.
func environment(a *worker.Attempt) []string {
	env := []string{
		"REFRESHD_UID=" + a.UID,
		"REFRESHD_ATTEMPT_UID=" + a.AttemptUID,
		fmt.Sprintf("REFRESHD_ATTEMPT_NO=%d", a.AttemptNo),
		"REFRESHD_DEADLINE_AT=" + model.FormatTime(a.DeadlineAt),
		"REFRESHD_PLANNED_AT=" + model.FormatTime(a.PlannedAt),
	}
	if a.Traceparent != "" {
		env = append(env, "TRACEPARENT="+a.Traceparent)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(a.Payload, &fields) != nil {
		return env // a payload is an object wherever it comes from; a test may give none
	}
	size, taken := 0, map[string]bool{}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		name := "REFRESHD_PAYLOAD_" + strings.Map(variableLetter, field)
		value, ok := scalar(fields[field])
		if !ok || taken[name] || size+len(name)+len(value) > maxEnv {
			continue
		}
		taken[name] = true
		size += len(name) + len(value)
		env = append(env, name+"="+value)
	}
	// A NUL would keep the program from starting.
	return slices.DeleteFunc(env, func(variable string) bool { return strings.Contains(variable, "\x00") })
}

func variableLetter(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return r - 'a' + 'A'
	case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return r
	default:
		return '_'
	}
}

// scalar renders a text, a number or a boolean as it is; the digits of numbers are kept.
func scalar(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	var text string
	switch {
	case len(raw) == 0 || strings.ContainsRune("{[n", rune(raw[0])):
		return "", false
	case json.Unmarshal(raw, &text) == nil:
		return text, true
	default:
		return string(raw), true
	}
}

// readMetrics reads the numbers in the output of a program or service, an object such as {"metrics":{"rows":51}}.
func readMetrics(attempt *worker.Attempt, output []byte) {
	var reply struct {
		Metrics map[string]any `json:"metrics"`
	}
	_ = json.Unmarshal(output, &reply)
	for name, value := range reply.Metrics {
		if n, is := value.(float64); is {
			attempt.Metric(name, n)
		}
	}
}

// lastLine passes on its input, and keeps the last line that is not blank, no longer than a message. One goroutine only.
type lastLine struct {
	next io.Writer
	line []byte // the line being written
	last string // the one before that was not blank
}

func (l *lastLine) Write(p []byte) (int, error) {
	for _, piece := range bytes.SplitAfter(p, []byte("\n")) {
		room := max(0, worker.MaxText-len(l.line))
		l.line = append(l.line, piece[:min(room, len(piece))]...)
		if bytes.HasSuffix(piece, []byte("\n")) {
			l.end()
		}
	}
	return l.next.Write(p)
}

func (l *lastLine) end() {
	if text := strings.TrimSpace(string(l.line)); text != "" {
		l.last = text
		if len(l.line) == worker.MaxText { // half a secret could not be recognized later
			l.last = strings.TrimSuffix(model.Masked(text+"…"), "…")
		}
	}
	l.line = l.line[:0]
}

func (l *lastLine) text() string {
	l.end()
	return l.last
}

// tail takes output for a sign of life, and may keep the end of it: at least as much as a log has.
type tail struct {
	attempt *worker.Attempt
	keeps   bool

	mu   sync.Mutex
	text []byte // guarded by mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.attempt.Alive()
	if !t.keeps {
		return len(p), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 4*model.MaxLog { // one byte more than a log has says that it is cut
		t.text = append(t.text[:0], t.text[len(t.text)-2*model.MaxLog:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// capped passes on the first bytes that are written to it and drops the rest. One goroutine only.
type capped struct {
	next io.Writer
	left int64 // bytes; negative: the omission has been reported
}

func (c *capped) Write(p []byte) (int, error) {
	pass := p[:min(int64(len(p)), max(0, c.left))]
	c.left -= int64(len(pass))
	if len(pass) > 0 {
		if _, err := c.next.Write(pass); err != nil {
			return 0, err
		}
	}
	if len(pass) < len(p) && c.left == 0 {
		c.left = -1
		_, err := io.WriteString(c.next, "\n[more output is dropped]\n")
		return len(p), err
	}
	return len(p), nil
}
