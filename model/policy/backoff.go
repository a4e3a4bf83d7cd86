package policy

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Strategy names how the delay of a Backoff grows with the failures of a cycle.
type Strategy string

// The strategies, each with its purpose.
const (
	Fixed       Strategy = "fixed"       // base: a recovery whose length is known
	Linear      Strategy = "linear"      // base * k: contention for a resource
	Exponential Strategy = "exponential" // base * factor^(k-1): networks, rate limits, outages of others
	Fibonacci   Strategy = "fibonacci"   // base * F(k): in between
)

// Backoff computes the delay after failure k from a formula.
type Backoff struct {
	Strategy Strategy
	Base     time.Duration // above 0
	Factor   float64       // exponential only, 1 to 100
	Cap      time.Duration // no delay is longer; 0: ten years
	Retries  int           // how many retries there are; Unlimited: no end
}

// Delay returns the delay after failure k, at most Cap.
func (b Backoff) Delay(o RetryInput) (time.Duration, bool, error) {
	if o.K < 1 || b.Retries != Unlimited && o.K > b.Retries {
		return 0, false, nil
	}
	growth := 1.0
	switch b.Strategy {
	case Linear:
		growth = float64(o.K)
	case Exponential:
		growth = math.Pow(b.Factor, float64(o.K-1))
	case Fibonacci: // beyond every possible cap it stops growing
		before := 0.0
		for range min(o.K, 100) - 1 {
			before, growth = growth, before+growth
		}
	}
	longest := cmp.Or(b.Cap, document.MaxDuration)
	if delay := float64(b.Base) * growth; delay < float64(longest) {
		return time.Duration(delay).Truncate(time.Millisecond), true, nil
	}
	return longest, true, nil
}

// Count is the number of retries.
func (b Backoff) Count() int { return b.Retries }

func (b Backoff) document() any {
	d := struct {
		Strategy Strategy `json:"strategy"`
		Base     string   `json:"base"`
		Factor   float64  `json:"factor,omitempty"`
		Cap      string   `json:"cap,omitempty"`
		Count    *int     `json:"count,omitempty"`
	}{Strategy: b.Strategy, Base: document.FormatDuration(b.Base)}
	if b.Strategy == Exponential && b.Factor != DefaultFactor {
		d.Factor = b.Factor
	}
	if b.Cap > 0 {
		d.Cap = document.FormatDuration(b.Cap)
	}
	if b.Retries != Unlimited {
		d.Count = &b.Retries
	}
	return d
}

// DefaultFactor is the factor of an exponential strategy that names none.
const DefaultFactor = 2

func parseBackoff(fields map[string]any) (b Backoff, err error) {
	doc := document.Read(fields, "strategy", "base", "factor", "cap", "count")
	b.Strategy = Strategy(doc.OneOf("strategy", "", string(Fixed), string(Linear), string(Exponential), string(Fibonacci)))
	if b.Strategy == "" {
		doc.Refuse("strategy", "fixed or linear or exponential or fibonacci", `""`)
	}
	b.Base = doc.Length("base", time.Minute)
	doc.Require(b.Base > 0, "base", `a duration above zero, such as "1m"`)
	b.Cap = doc.Length("cap", 0)
	doc.Require(b.Cap == 0 || b.Cap >= b.Base, "cap", "at least the base of "+document.FormatDuration(b.Base))
	count, _ := doc.Scalar("count")
	if b.Retries = Unlimited; doc.Fields["count"] != nil && count != "unlimited" {
		b.Retries, err = strconv.Atoi(count)
		doc.Require(err == nil && b.Retries >= 0 && b.Retries <= maxRetries, "count", fmt.Sprintf("a whole number from 0 to %d, or unlimited", maxRetries))
	}
	found := false
	switch b.Factor, found = doc.Number("factor", 1, 100); {
	case b.Strategy != Exponential && found:
		doc.Refuse("factor", "strategy exponential with it", document.Found(string(b.Strategy)))
	case b.Strategy == Exponential && !found:
		b.Factor = DefaultFactor
	}
	return b, doc.Err()
}

// Annotation begins the short form above a function in Go.
const Annotation = "//ftl:retry "

// parseShortForm reads "[<count>] <min> [<max>]": fixed without max, doubling with it, unlimited without count.
func parseShortForm(text string) (Retries, error) {
	refused := document.Refuse("retries", `"[<count>] <min> [<max>]" such as "10 5s 10m", or a list`, document.Found(text))
	words := strings.Fields(strings.TrimPrefix(text, Annotation))
	switch {
	case len(words) == 1 && strings.EqualFold(words[0], none):
		return Delays{}, nil
	case len(words) == 1 && strings.Trim(words[0], "0123456789") == "":
		return nil, refuseRetries(words[0])
	}
	b := Backoff{Strategy: Fixed, Retries: Unlimited}
	if len(words) > 1 {
		if count, err := strconv.Atoi(words[0]); err == nil {
			if count < 0 || count > maxRetries {
				return nil, document.Refuse(refused.Field, fmt.Sprintf("a count from 0 to %d", maxRetries), refused.Found)
			}
			b.Retries, words = count, words[1:]
		}
	}
	if len(words) == 0 || len(words) > 2 {
		return nil, refused
	}
	var err error
	if b.Base, err = document.ParseDuration(words[0]); err != nil || b.Base <= 0 {
		return nil, refused
	}
	if len(words) == 1 {
		return b, nil
	}
	b.Strategy, b.Factor = Exponential, DefaultFactor
	if b.Cap, err = document.ParseDuration(words[1]); err != nil || b.Cap < b.Base {
		return nil, refused
	}
	return b, nil
}
