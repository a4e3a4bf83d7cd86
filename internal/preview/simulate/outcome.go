package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Result is how an attempt ends.
type Result string

// The results.
const (
	Success Result = "success"
	Failure Result = "failure"
	Lost    Result = "lost" // the worker never answers: the deadline passes
)

// Outcome is how and when one attempt ends.
type Outcome struct {
	Result    Result
	After     time.Duration // from the start to the answer, 0 or more; an answer after the deadline is lost
	ErrorType string        // of a failure; may be empty
}

// Outcomes are those of one attempt after another. Behind the last one none starts. Each run begins with the first.
type Outcomes = iter.Seq[Outcome]

// Always repeats one outcome for ever.
func Always(outcome Outcome) Outcomes {
	return func(yield func(Outcome) bool) {
		for yield(outcome) {
		}
	}
}

const (
	maxOutcomes    = 100_000
	maxOutcomeLine = 1000
)

// LineError is a wrong line of a file.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Err) }

// Unwrap returns the reason, a *document.Error.
func (e *LineError) Unwrap() error { return e.Err }

// ReadOutcomes reads one outcome a line: "success 2m", "failure 3m", "failure 3m NetworkError" or "lost". It skips comments after # and blank lines.
// An error is a *LineError, or one of in.
func ReadOutcomes(in io.Reader) (list []Outcome, err error) {
	err = eachLine(in, maxOutcomeLine, func(line []byte) error {
		text, _, _ := strings.Cut(string(line), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			return nil
		}
		outcome := Outcome{Result: Result(words[0])}
		var err error
		switch most := map[Result]int{Success: 2, Failure: 3, Lost: 1}[outcome.Result]; {
		case len(list) == maxOutcomes:
			err = document.Refuse("", fmt.Sprintf("at most %d outcomes", maxOutcomes), "more")
		case most == 0 || len(words) > most || most > 1 && len(words) == 1:
			err = document.Refuse("", `"success 2m", "failure 3m", "failure 3m NetworkError" or "lost"`, document.Found(strings.Join(words, " ")))
		case most > 1:
			outcome.After, err = document.ParseDuration(words[1])
		}
		if len(words) > 2 {
			outcome.ErrorType = words[2]
		}
		list = append(list, outcome)
		return err
	})
	return list, err
}

// eachLine reads the lines of a file, each of at most so many bytes. An error is a *LineError, or one of in.
func eachLine(in io.Reader, most int, read func(text []byte) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, most)
	number := 1
	for ; lines.Scan(); number++ {
		if err := read(lines.Bytes()); err != nil {
			return &LineError{number, err}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return &LineError{number, document.Refuse("", fmt.Sprintf("at most %d bytes", most), "more")}
	}
	return lines.Err()
}

// Chance decides by random numbers how attempts end. The same seed gives the same outcomes, whatever else changes: attempt 5 of
// one policy ends like attempt 5 of another.
type Chance struct {
	Seed              uint64
	Fail, Lost        float64 // shares of the attempts, from 0 to 1, together at most 1
	Shortest, Longest time.Duration
}

// Outcomes yields outcomes without end. Answers come after whole seconds where the range allows.
func (c Chance) Outcomes(yield func(Outcome) bool) {
	random := rand.New(rand.NewPCG(c.Seed, 0))
	for more := true; more; {
		share, length := random.Float64(), random.Float64() // both each time: an attempt must not depend on the one before
		after := c.Shortest + time.Duration(length*float64(c.Longest-c.Shortest))
		outcome := Outcome{Result: Success, After: max(c.Shortest, after.Truncate(time.Second))}
		switch {
		case share < c.Lost:
			outcome = Outcome{Result: Lost}
		case share < c.Lost+c.Fail:
			outcome.Result = Failure
		}
		more = yield(outcome)
	}
}

// ParseShare reads a percentage such as "5%" or "5" as a share from 0 to 1. An error is a *document.Error.
func ParseShare(text string) (float64, error) {
	number, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	if err != nil || !(number >= 0 && number <= 100) {
		return 0, &document.Error{Want: "a percentage such as 5%", Found: document.Found(text)}
	}
	return number / 100, nil
}

// ParseLengths reads a duration, or a range of them such as "1m-5m". An error is a *document.Error.
func ParseLengths(text string) (shortest, longest time.Duration, err error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	if shortest, err = document.ParseDuration(from); err == nil {
		longest, err = document.ParseDuration(to)
	}
	if err != nil || shortest > longest {
		err = &document.Error{Want: "a duration or a range such as 1m-5m", Found: document.Found(text)}
	}
	return shortest, longest, err
}
