package policy

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Retries is a retry strategy: Delays, Backoff, AgeTable or *Expression. It is immutable and safe for concurrent use.
type Retries interface {
	// Delay returns how long to wait after a failure, or UntilPlanned; false: there is no retry for it. The error is one of an expression.
	Delay(o RetryInput) (delay time.Duration, retry bool, err error)
	// Count is the most retries that one cycle can have, or Unlimited.
	Count() int
	// document is the strategy in a canonical policy.
	document() any
}

// Unlimited is the Count of a strategy that never ends by itself.
const Unlimited = -1

// UntilPlanned is the delay that waits for the planned refresh, whenever that is.
const UntilPlanned time.Duration = -1

// NeverRetry is the delay of an error class that is not retried.
const NeverRetry time.Duration = -2

const (
	untilPlanned = "next"
	neverRetry   = "never"
)

// RetryInput is a strategy's input about a failure.
type RetryInput struct {
	K            int           // failures in this cycle, 1 is the first
	Reason       string        // of the worker, or "timeout"
	ErrorType    string        // likewise
	QueueDepth   int           // entries of the input list
	SinceSuccess time.Duration // since the last success, or the first start of a model that never succeeded
}

// Delays is an explicit retry list: Delays[k-1] follows failure k. N delays are N retries are N+1 runs.
type Delays []time.Duration

// Delay returns the delay after failure k; false: there is no retry for it.
func (d Delays) Delay(o RetryInput) (time.Duration, bool, error) {
	if o.K < 1 || o.K > len(d) {
		return 0, false, nil
	}
	return d[o.K-1], true, nil
}

// Count is the number of delays.
func (d Delays) Count() int { return len(d) }

func (d Delays) document() any {
	texts := make([]string, len(d))
	for i, delay := range d {
		texts[i] = formatDelay(delay)
	}
	return texts
}

func formatDelay(delay time.Duration) string {
	switch delay {
	case UntilPlanned:
		return untilPlanned
	case NeverRetry:
		return neverRetry
	default:
		return document.FormatDuration(delay)
	}
}

// parseRetries reads the retries of a policy. jitter is the jitter that the form implies when the policy names none.
func parseRetries(value any) (retries Retries, jitter float64, err error) {
	switch v := value.(type) {
	case nil:
		return nil, 0, nil
	case []any:
		if len(v) > maxRetries {
			return nil, 0, document.Refuse("retries", fmt.Sprintf("at most %d delays", maxRetries), fmt.Sprint(len(v)))
		}
		delays := make(Delays, len(v))
		for i, item := range v {
			if delays[i], err = parseDelay(fmt.Sprintf("retries[%d]", i), item); err != nil {
				return nil, 0, err
			}
		}
		return delays, 0, nil
	case string:
		retries, err = parseShortForm(v)
		return retries, 0, err
	case map[string]any:
		return parseStrategy(v)
	default:
		return nil, 0, refuseRetries(value)
	}
}

// refuseRetries asks for the meaning of a bare number: how many, or how soon.
func refuseRetries(value any) error {
	want := wantRetries
	if text, ok := document.ScalarText(value); ok && text != "" && strings.Trim(text, "0123456789") == "" {
		want = fmt.Sprintf(`{strategy: fixed, base: 1m, count: %[1]s} or a list of %[1]s delays for %[1]s retries, [%[1]ss] for one retry after %[1]s seconds, `+
			`"%[1]ss" for a retry every %[1]s seconds, or [] for none`, document.Shorten(text, document.MaxFound))
	}
	return document.Refuse("retries", want, document.Found(value))
}

const wantRetries = `a list such as [0, 1m, 5m], {strategy: exponential, base: 1m}, {by_age: [...]}, {expr: "..."} or "10 5s 10m"`

func parseStrategy(fields map[string]any) (retries Retries, jitter float64, err error) {
	switch {
	case fields["by_age"] != nil:
		retries, err = parseAgeTable(fields)
	case fields["expr"] != nil:
		var text string
		if text, err = readExpression(fields); err == nil {
			retries, err = parseExpression(text)
		}
	case fields["strategy"] == none:
		err = document.Read(fields, "strategy").Err()
		retries = Delays{}
	case fields["strategy"] == strategySimple:
		retries, err = parseBackoff(resolveStrategy(fields))
	case fields["strategy"] != nil:
		retries, err = parseBackoff(resolveStrategy(fields))
		jitter = strategyJitter
	default:
		err = document.Refuse("", wantRetries, "an object without strategy, by_age or expr")
	}
	if err != nil {
		return nil, 0, document.Place(err, "retries") // a nil *Expression in retries would not be nil
	}
	return retries, jitter, nil
}

const strategyJitter = 0.2

const maxRetries = 1000

func parseDelay(field string, value any) (time.Duration, error) {
	text, ok := document.ScalarText(value)
	if !ok {
		return 0, document.Refuse(field, `a delay such as 0, "5m" or next`, document.Found(value))
	}
	if strings.EqualFold(strings.TrimSpace(text), untilPlanned) {
		return UntilPlanned, nil
	}
	return document.DurationAt(field, text)
}

// Vary moves a delay by up to a share of itself. The uid of the attempt decides, so that each decision can be computed again. The result is whole
// milliseconds; zero stays zero.
func Vary(delay time.Duration, share float64, attemptUID string) time.Duration {
	if delay <= 0 || share == 0 {
		return delay
	}
	by := share * (2*Fraction("jitter", attemptUID) - 1)
	return (delay + time.Duration(by*float64(delay))).Truncate(time.Millisecond)
}

// Fraction maps a text evenly to a number from 0 up to 1, always the same. Each use has its purpose, so that their numbers are independent.
func Fraction(purpose, text string) float64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(purpose)) // a hash takes everything
	_, _ = hash.Write([]byte{0})
	_, _ = hash.Write([]byte(text))
	// FNV alone does not spread the differences of similar texts over all bits; the finalizer of MurmurHash3 does.
	h := hash.Sum64()
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return float64((h^h>>33)>>11) / (1 << 53)
}

// AgeTable makes retries rarer the longer a model is without a success: the first row whose bound holds. Beyond the last row there is no retry.
type AgeTable []AgeRow

// AgeRow is one step of an AgeTable.
type AgeRow struct {
	UpTo  time.Duration // the longest time without a success for which the row holds, inclusive
	Delay time.Duration
}

// Delay returns the delay of the first row that holds.
func (t AgeTable) Delay(o RetryInput) (time.Duration, bool, error) {
	for _, row := range t {
		if o.SinceSuccess <= row.UpTo {
			return row.Delay, true, nil
		}
	}
	return 0, false, nil
}

// Count is Unlimited: a table ends by age.
func (t AgeTable) Count() int { return Unlimited }

type ageRowDocument struct {
	UpTo  string `json:"up_to"`
	Delay string `json:"delay"`
}

func (t AgeTable) document() any {
	rows := make([]ageRowDocument, len(t))
	for i, row := range t {
		rows[i] = ageRowDocument{document.FormatDuration(row.UpTo), formatDelay(row.Delay)}
	}
	return map[string]any{"by_age": rows}
}

const maxAgeRows = 50

// parseAgeTable reads rows such as {up_to: 1d, delay: 5m}, or "1d: 5m" in short.
func parseAgeTable(fields map[string]any) (AgeTable, error) {
	doc := document.Read(fields, "by_age")
	rows, ok := doc.Fields["by_age"].([]any)
	if doc.Require(ok && len(rows) > 0 && len(rows) <= maxAgeRows, "by_age", fmt.Sprintf("1 to %d rows such as {up_to: 1d, delay: 5m}", maxAgeRows)); doc.Err() != nil {
		return nil, doc.Err()
	}
	table := make(AgeTable, len(rows))
	for i, value := range rows {
		field := fmt.Sprintf("by_age[%d]", i)
		if text, ok := value.(string); ok {
			upTo, delay, found := strings.Cut(text, ":")
			if !found {
				doc.Refuse(field, `a row such as "1d: 5m"`, document.Found(text))
			}
			value = map[string]any{"up_to": upTo, "delay": strings.TrimSpace(delay)}
		}
		row := document.Read(value, "up_to", "delay")
		table[i].UpTo = row.Length("up_to", 0)
		row.Require(table[i].UpTo > 0, "up_to", `an age above zero, such as "1d"`)
		row.Require(row.Fields["delay"] != nil, "delay", `a delay such as "5m"`)
		delay, err := parseDelay("delay", row.Fields["delay"])
		row.Fail(err)
		if table[i].Delay = delay; i > 0 && table[i].UpTo <= table[i-1].UpTo {
			row.Refuse("up_to", "more than "+document.FormatDuration(table[i-1].UpTo)+" of the row before", document.FormatDuration(table[i].UpTo))
		}
		doc.Fail(document.Place(row.Err(), field))
	}
	return table, doc.Err()
}
