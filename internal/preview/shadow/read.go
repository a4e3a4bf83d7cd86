package shadow

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// The formats of a log. FormatAuto detects it by the first line.
const (
	FormatAuto    = "auto"
	formatCSV     = "csv"
	formatLines   = "jsonl"
	formatMonitor = "monitor"
	formatCron    = "cron"
)

// Formats are the formats that Read knows.
var Formats = []string{FormatAuto, formatCSV, formatLines, formatMonitor, formatCron}

// Log describes the format of a log.
type Log struct {
	Format  string
	Columns Columns
	Zone    *time.Location // of times without an offset
	// Input and Output are the lists of the old system, and Wire how it writes on them, for the format monitor.
	Input, Output string
	Wire          model.Wire
	// Commands are those of the models, and Now ends the year of times without one, for the format cron.
	Commands Commands
	Now      time.Time
}

const maxLine = 1 << 20

// Read calls take with the runs of a log, in order, and refuse with wrong lines. The error is one of in or take, or says that columns are missing.
func (l *Log) Read(in io.Reader, take func(Run) error, refuse func(*simulate.LineError)) error {
	reader, number := bufio.NewReaderSize(in, 64<<10), 0
	var parse func(line string) ([]Run, error)
	wire := &tap{log: l, open: map[string]*Run{}, fence: map[string]string{}}
	for {
		var runs []Run
		line, err := readLine(reader)
		if errors.Is(err, io.EOF) {
			for _, run := range wire.open {
				runs = append(runs, *run)
			}
			slices.SortFunc(runs, func(a, b Run) int { return a.Line - b.Line })
			return each(runs, take)
		}
		if number++; number == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // the byte order mark of Windows
		}
		if err != nil && !errors.Is(err, errLong) {
			return err
		}
		if err == nil && strings.TrimSpace(line) == "" {
			continue
		}
		if parse == nil {
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			format := l.Format
			if format == FormatAuto {
				switch {
				case strings.HasPrefix(strings.TrimSpace(line), "{"):
					format = formatLines
				case line == "OK" || monitored.MatchString(line):
					format = formatMonitor
				case logged.MatchString(line):
					format = formatCron
				}
			}
			switch format {
			case formatLines:
				parse = l.parseLine
			case formatMonitor:
				parse = wire.parse
			case formatCron:
				parse = l.cron
			default:
				if parse, err = l.csv(line); err != nil {
					return fmt.Errorf("line %d: %w", number, err)
				}
				continue
			}
		}
		if err == nil {
			wire.line = number
			runs, err = parse(line)
		}
		if err != nil {
			refuse(&simulate.LineError{Line: number, Err: err})
		}
		for i := range runs {
			runs[i].Line = cmp.Or(runs[i].Line, number)
		}
		if err := each(runs, take); err != nil {
			return err
		}
	}
}

func each(runs []Run, take func(Run) error) error {
	for _, run := range runs {
		if err := take(run); err != nil {
			return err
		}
	}
	return nil
}

var errLong = document.Refuse("", fmt.Sprintf("at most %d bytes", maxLine), "more")

// readLine reads a line without its end, and skips the rest of one that is too long.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !long):
			return "", err
		case long:
			return "", errLong
		}
		return strings.TrimRight(string(line), "\r\n"), nil
	}
}

func (l *Log) csv(header string) (func(string) ([]Run, error), error) {
	comma := ','
	for _, other := range ";\t" {
		if strings.ContainsRune(header, other) && !strings.Contains(header, ",") {
			comma = other
		}
	}
	names, err := csvFields(header, comma)
	if err != nil {
		return nil, err
	}
	places := make(map[string]int, len(names))
	for i, name := range names {
		places[strings.TrimSpace(name)] = i
	}
	c, usual := &l.Columns, DefaultColumns
	for _, column := range [][2]string{{c.UID, ""}, {c.At, ""}, {c.Ended, usual.Ended}, {c.Outcome, usual.Outcome}, {c.Error, usual.Error}} {
		if _, found := places[column[0]]; !found && column[0] != column[1] {
			return nil, document.Refuse("columns", "one called "+document.Quote(column[0]), strings.Join(names, ", "))
		}
	}
	return func(line string) ([]Run, error) {
		fields, err := csvFields(line, comma)
		if err != nil {
			return nil, err
		}
		if len(fields) != len(names) {
			return nil, document.Refuse("", fmt.Sprintf("%d columns, as in the header", len(names)), fmt.Sprint(len(fields)))
		}
		return c.run(func(column string) string {
			if place, found := places[column]; found {
				return fields[place]
			}
			return ""
		}, l.Zone)
	}, nil
}

// csvFields reads one line by itself, so that an open quote spoils only its line.
func csvFields(line string, comma rune) ([]string, error) {
	reader := csv.NewReader(strings.NewReader(line))
	reader.Comma = comma
	fields, err := reader.Read()
	if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
		err = document.Refuse("", "a line of CSV", parse.Err.Error())
	}
	return fields, err
}

func (l *Log) parseLine(line string) ([]Run, error) {
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil || decoder.More() {
		return nil, document.Refuse("", "one JSON object", document.Found(line))
	}
	return l.Columns.run(func(column string) string {
		switch value := fields[column].(type) {
		case nil:
			return ""
		case string:
			return value
		default:
			return fmt.Sprint(value)
		}
	}, l.Zone)
}

// monitored matches a line of `redis-cli monitor`: the time, the client (an IPv6 address has brackets), and the command with its arguments.
var monitored = regexp.MustCompile(`^(\d+\.\d+) \[\d+ [^"]*\] ("(?:[^"\\]|\\.)*"(?: "(?:[^"\\]|\\.)*")*)$`)

var argument = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// tap reads what an old system pushes to its two lists from `redis-cli monitor`. An attempt becomes a run with its result, or when its model starts
// again, because nobody waits for the result then.
type tap struct {
	log   *Log
	line  int
	open  map[string]*Run // by the model
	fence map[string]string
}

// parse reads a line; one about other keys has no run.
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
		if arguments[i], err = strconv.Unquote(text); err != nil {
			return nil, document.Refuse("", "a text in quotes as redis-cli writes it", document.Found(text))
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
