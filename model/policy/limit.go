package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// Limit bounds models with the same key at the same time. It says Running or Rate, or both.
type Limit struct {
	Key     Key
	Running int  // attempts at a time, 1 to 100,000; 0: any number
	Rate    Rate // of starts; the zero value: any
}

const (
	maxLimits  = 4
	maxRunning = 100_000
)

type limitDocument struct {
	Key     string `json:"key"`
	Running int    `json:"running,omitempty"`
	Rate    string `json:"rate,omitempty"`
}

var limitAliases = map[string]string{"concurrency": "running"}

func (p *Policy) limitsDocument() []limitDocument {
	limits := make([]limitDocument, len(p.Limits))
	for i, limit := range p.Limits {
		limits[i] = limitDocument{limit.Key.String(), limit.Running, limit.Rate.String()}
	}
	return limits
}

func (p *Policy) readLimits(doc *document.Reader) {
	if !saysNone(doc, "closed") {
		names := doc.Words("closed")
		for i, name := range names {
			doc.Fail(schedule.CheckCalendarName(fmt.Sprintf("closed[%d]", i), name))
		}
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > maxClosed {
			doc.Refuse("closed", fmt.Sprintf("at most %d calendars", maxClosed), fmt.Sprint(len(names)))
		}
		p.Closed = append(p.Closed, names...) // nil stays nil
	}
	value := doc.Fields["limits"]
	if value == nil || saysNone(doc, "limits") {
		return
	}
	list, ok := value.([]any)
	doc.Require(ok, "limits", `a list such as [{key: "{host(input_url)}", running: 4}]`)
	if len(list) > maxLimits {
		doc.Refuse("limits", fmt.Sprintf("at most %d limits", maxLimits), fmt.Sprint(len(list)))
		return
	}
	for i, item := range list {
		limit, err := parseLimit(item)
		for _, before := range p.Limits { // a model would take the same key twice
			if before.Key.Name() == limit.Key.Name() && err == nil {
				found := fmt.Sprintf("%s after %s, and both count by %s", limit.Key, before.Key, limit.Key.Name())
				err = document.Refuse("key", "one limit for each key", found)
			}
		}
		doc.Fail(document.Place(err, fmt.Sprintf("limits[%d]", i)))
		p.Limits = append(p.Limits, limit)
	}
}

func parseLimit(value any) (limit Limit, err error) {
	doc := document.Read(resolveNames(value, limitAliases), "key", "running", "rate")
	limit.Key, limit.Running = readKey(doc), doc.Int("running", 1, maxRunning)
	rate := doc.Text("rate")
	limit.Rate, err = ReadRate(rate)
	doc.Fail(err)
	if limit.Running == 0 && rate == "" {
		doc.Refuse("", "running or rate, or both", "neither")
	}
	return limit, doc.Err()
}

func readKey(doc *document.Reader) Key {
	key, err := ParseKey(doc.Text("key"))
	doc.Fail(document.Place(err, "key"))
	return key
}

const maxClosed = 8

// RetryAfterScope says which models wait for the retry_after of a worker.
type RetryAfterScope string

const (
	// ScopeAuto is ScopeKey for the status 429 of HTTP when the policy has limits, else ScopeModel.
	ScopeAuto RetryAfterScope = ""
	// ScopeModel holds back the model that failed.
	ScopeModel RetryAfterScope = "model"
	// ScopeKey closes the keys of the model's limits too.
	ScopeKey RetryAfterScope = "key"
)

const scopeAuto = "auto"

const tooManyRequests = statusPrefix + "429"

// RetryAfterClosesKeys reports whether a retry_after with this error type closes the keys of the policy's limits.
func (p *Policy) RetryAfterClosesKeys(errorType string) bool {
	if p.RetryAfterScope == ScopeAuto {
		return len(p.Limits) > 0 && statusType(errorType) == tooManyRequests
	}
	return p.RetryAfterScope == ScopeKey
}

// DefaultMaxRetryAfter is the most that a server may ask for where a policy does not say.
const DefaultMaxRetryAfter = 24 * time.Hour

// maxClosing bounds for how long one answer closes a key, for any model: it stops many models.
const maxClosing = time.Hour

func (p *Policy) serversMost() time.Duration { return cmp.Or(p.MaxRetryAfter, DefaultMaxRetryAfter) }

// Bound bounds by MaxRetryAfter the wish of a failure's server. A worker's own wish stays.
func (p *Policy) Bound(f *Failure) {
	if most := p.serversMost(); f.ByServer && f.RetryAfter > most {
		f.Asked, f.RetryAfter = f.RetryAfter, most
	}
}

// ClosesKeysFor is for how long a failure closes the keys of the policy's limits: as long as it asks, at most MaxRetryAfter and an hour. 0: not at all.
func (p *Policy) ClosesKeysFor(f Failure) time.Duration {
	if !p.RetryAfterClosesKeys(f.ErrorType) {
		return 0
	}
	return min(f.RetryAfter, p.serversMost(), maxClosing)
}

// Rate is how many may start in a length of time: Count from 1 to 1,000,000, Per from 1 second to 1 day. The zero value is no bound.
type Rate struct {
	Count int
	Per   time.Duration
}

const (
	maxRateCount = 1_000_000
	minRatePer   = time.Second
	maxRatePer   = 24 * time.Hour
)

const wantRate = `a number from 1 to 1000000, a slash and a time from 1s to 1d, such as "60/1m" or "10/s"`

// ParseRate reads a rate such as "60/1m", "10/s" or "5/1h". A refusal is a *document.Error without a field.
func ParseRate(text string) (Rate, error) {
	count, per, _ := strings.Cut(text, "/")
	per = strings.TrimSpace(per)
	if per != "" && strings.IndexByte("0123456789pP", per[0]) < 0 {
		per = "1" + per
	}
	n, failed := strconv.Atoi(strings.TrimSpace(count))
	length, err := document.ParseDuration(per)
	if failed != nil || err != nil || n < 1 || n > maxRateCount || length < minRatePer || length > maxRatePer {
		return Rate{}, document.Refuse("", wantRate, document.Found(text))
	}
	return Rate{n, length}, nil
}

// ReadRate reads a rate, or an empty text for none, in a field that is called rate.
func ReadRate(text string) (rate Rate, err error) {
	if text != "" {
		rate, err = ParseRate(text)
	}
	return rate, document.Place(err, "rate")
}

// String is the shortest form of a rate, such as "60/m" or "5/1h30m", which ParseRate reads back; empty for the zero value.
func (r Rate) String() string {
	if r == (Rate{}) {
		return ""
	}
	per := document.FormatDuration(r.Per)
	if unit := strings.TrimPrefix(per, "1"); strings.Trim(unit, "smhd") == "" {
		per = unit
	}
	return fmt.Sprintf("%d/%s", r.Count, per)
}

// MarshalText is String, for JSON.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Interval is the time from one start to the next at an even pace; 0 for the zero value.
func (r Rate) Interval() time.Duration {
	if r.Count == 0 {
		return 0
	}
	return r.Per / time.Duration(r.Count)
}

// Share is the rate of one of several parts, which have it together.
func (r Rate) Share(parts int) Rate {
	if per := r.Per * time.Duration(parts); per <= maxRatePer {
		return Rate{r.Count, per}
	}
	return Rate{max(1, r.Count/parts), r.Per}
}

// Allow returns how many may start at now, when the next may from an instant on. Unused starts are made up for as far as behind reaches back.
func (r Rate) Allow(next, now time.Time, behind time.Duration) int {
	if r.Count == 0 {
		return math.MaxInt
	}
	waited := now.Sub(earliest(next, now, behind))
	if waited < 0 {
		return 0
	}
	return int(waited/r.Interval()) + 1
}

// Spend returns from when on the next may start behind n that start at now. It is rounded up to milliseconds, so that the rate holds as it is stored.
func (r Rate) Spend(next, now time.Time, behind time.Duration, n int) time.Time {
	if r.Count == 0 {
		return time.Time{}
	}
	return earliest(next, now, behind).Add(time.Duration(n)*r.Interval() + time.Millisecond - 1).Truncate(time.Millisecond)
}

func earliest(next, now time.Time, behind time.Duration) time.Time {
	if least := now.Add(-behind); next.Before(least) {
		return least
	}
	return next
}
