package shadow

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// monitored matches a line of `redis-cli monitor`: the time, who sent it (an address of IPv6 has brackets of its own), and the command with its
// arguments.
var monitored = regexp.MustCompile(`^(\d+\.\d+) \[\d+ [^"]*\] ("(?:[^"\\]|\\.)*"(?: "(?:[^"\\]|\\.)*")*)$`)

var argument = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// tap reads what an old system pushes to its two lists, as `redis-cli monitor` shows it. An attempt becomes a run when its result comes, or when
// its model starts another one, for then nobody waits for its result.
type tap struct {
	log   *Log
	line  int
	open  map[string]*Run // by the model
	fence map[string]string
}

func newTap(log *Log) *tap {
	return &tap{log: log, open: map[string]*Run{}, fence: map[string]string{}}
}

// parse reads a line; one that tells of something else than the two lists has no run.
func (t *tap) parse(line string) (runs []Run, err error) {
	parts := monitored.FindStringSubmatch(line)
	if parts == nil {
		if line == "OK" {
			return nil, nil
		}
		return nil, document.Refuse("", `a line of redis-cli monitor, as in 1700000000.123456 [0 127.0.0.1:5000] "RPUSH" "list" "…"`, document.Found(line))
	}
	arguments := argument.FindAllString(parts[2], -1)
	for i, text := range arguments {
		if arguments[i], err = unquote(text); err != nil {
			return nil, err
		}
	}
	if len(arguments) < 3 || !slices.Contains([]string{"RPUSH", "LPUSH"}, strings.ToUpper(arguments[0])) {
		return nil, nil
	}
	at, err := parseTime(parts[1], time.UTC)
	for _, text := range arguments[2:] {
		switch {
		case err != nil:
			return runs, err
		case arguments[1] == t.log.Input:
			runs, err = t.begin(runs, text, at)
		case arguments[1] == t.log.Output:
			runs, err = t.end(runs, text, at)
		}
	}
	return runs, err
}

func unquote(quoted string) (string, error) {
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return "", document.Refuse("", "a text in quotes as redis-cli writes it", document.Found(quoted))
	}
	return text, nil
}

// begin notes an attempt that was handed to the workers.
func (t *tap) begin(runs []Run, text string, at time.Time) ([]Run, error) {
	entry, err := t.log.Wire.ParseEntry(text)
	if err != nil {
		return runs, err
	}
	if before := t.open[entry.UID]; before != nil {
		before.Outcome = simulate.Lost
		runs = append(runs, *before)
	}
	t.open[entry.UID], t.fence[entry.UID] = &Run{Line: t.line, UID: entry.UID, At: at}, entry.AttemptUID
	return runs, nil
}

// end notes a result, if it is that of the attempt.
func (t *tap) end(runs []Run, text string, at time.Time) ([]Run, error) {
	m, err := t.log.Wire.DecodeMessage([]byte(text))
	if err != nil {
		return runs, err
	}
	run := t.open[m.UID]
	if run == nil || t.fence[m.UID] != m.AttemptUID || m.Type != model.MessageSuccess && m.Type != model.MessageFailure {
		return runs, nil
	}
	delete(t.open, m.UID)
	delete(t.fence, m.UID)
	run.EndedAt, run.Outcome, run.ErrorType = at, simulate.Result(m.Type), m.ErrorType
	return append(runs, *run), nil
}

func (t *tap) rest() (runs []Run) {
	for _, run := range t.open {
		runs = append(runs, *run)
	}
	slices.SortFunc(runs, func(a, b Run) int { return a.Line - b.Line })
	return runs
}
