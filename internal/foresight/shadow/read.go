package shadow

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// The formats of a log. FormatAuto goes by its first line.
const (
	FormatAuto    = "auto"
	formatCSV     = "csv"
	formatLines   = "jsonl"
	formatMonitor = "monitor"
)

// Formats are the formats that Read knows.
var Formats = []string{FormatAuto, formatCSV, formatLines, formatMonitor}

// Log says how a log is written.
type Log struct {
	Format  string
	Columns Columns
	Zone    *time.Location // of times without an offset
	// Input and Output are the lists of the old system, and Wire how it writes on them, for the format monitor.
	Input, Output string
	Wire          model.Wire
}

const maxLine = 1 << 20

// Read hands the runs of a log to take, in their order. A line that is none goes to refuse. The error is one of in or of take, or says that the
// columns are not those that were asked for.
func (l *Log) Read(in io.Reader, take func(Run) error, refuse func(*simulate.LineError)) error {
	reader, number := bufio.NewReaderSize(in, 64<<10), 0
	var parse func(line string) ([]Run, error)
	wire := newTap(l)
	for {
		line, err := readLine(reader)
		if errors.Is(err, io.EOF) {
			return each(wire.rest(), take)
		}
		if number++; number == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // the mark by which programs of Windows begin a file
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
			header := false
			if parse, header, err = l.parser(line, wire); err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			if header {
				continue
			}
		}
		var runs []Run
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

// readLine reads a line without its end. Of one that is too long the rest is passed over.
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

func (l *Log) parser(first string, wire *tap) (parse func(string) ([]Run, error), header bool, err error) {
	format := l.Format
	if format == FormatAuto {
		switch {
		case strings.HasPrefix(strings.TrimSpace(first), "{"):
			format = formatLines
		case first == "OK" || monitored.MatchString(first):
			format = formatMonitor
		default:
			format = formatCSV
		}
	}
	switch format {
	case formatLines:
		return l.parseLine, false, nil
	case formatMonitor:
		return wire.parse, false, nil
	}
	parse, err = l.csv(first)
	return parse, true, err
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
		run, err := c.run(func(column string) string {
			if place, found := places[column]; found {
				return fields[place]
			}
			return ""
		}, l.Zone)
		return some(run, err)
	}, nil
}

// csvFields reads one line by itself, so that a quote that is never closed costs no more than its line.
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
	run, err := l.Columns.run(func(column string) string {
		switch value := fields[column].(type) {
		case nil:
			return ""
		case string:
			return value
		default:
			return fmt.Sprint(value)
		}
	}, l.Zone)
	return some(run, err)
}

func some(run Run, err error) ([]Run, error) {
	if err != nil {
		return nil, err
	}
	return []Run{run}, nil
}
