package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"

	"github.com/refreshd/refreshd/internal/simulate"
)

const (
	usualLimit  = 1000
	hopelessly  = 50 // attempts that all fail: enough to see what it comes to
	maxAttempts = 100_000
	maxDays     = 3660
	usualDays   = 30
)

// check refuses flags that contradict each other.
func (s *simulation) check() error {
	inputs := 0
	for _, from := range []string{s.policy, s.against, s.outcomes} {
		if from == "-" {
			inputs++
		}
	}
	switch {
	case s.policy == "":
		return usagef("--policy: expected a file, - or the name of a stored policy, found nothing")
	case inputs > 1:
		return usagef("expected standard input (-) once, found it %d times", inputs)
	case s.outcomes != "" && s.byChance():
		return usagef("--outcomes: expected no --seed, --fail, --lost and --duration beside it")
	case s.until != "" && s.days != 0:
		return usagef("--until: expected no --days beside it")
	case s.days < 0 || s.days > maxDays:
		return usagef("--days: expected 1 to %d, found %d", maxDays, s.days)
	case s.limit < 0 || s.limit > maxAttempts:
		return usagef("--limit: expected 1 to %d, found %d", maxAttempts, s.limit)
	}
	return nil
}

// plan says where the run begins and ends.
func (s *simulation) plan(zone *time.Location, now time.Time) (simulate.Plan, error) {
	plan := simulate.Plan{Start: now.Truncate(time.Second), Limit: s.limit}
	var err error
	if s.start != "" {
		if plan.Start, err = instantOf("--start", s.start, zone); err != nil {
			return plan, err
		}
	}
	if plan.Until, err = s.end(plan.Start, zone); err != nil {
		return plan, err
	}
	if plan.Seed, err = s.readSeed(); err != nil {
		return plan, err
	}
	switch {
	case s.limit > 0:
	case s.outcomes == "" && !s.byChance():
		plan.Limit = hopelessly
	default:
		plan.Limit = usualLimit
	}
	return plan, nil
}

// end is the time after which no attempt starts; zero: there is none.
func (s *simulation) end(start time.Time, zone *time.Location) (time.Time, error) {
	switch {
	case s.days > 0:
		return start.AddDate(0, 0, s.days), nil
	case s.until == "" && s.byChance():
		return start.AddDate(0, 0, usualDays), nil
	case s.until == "":
		return time.Time{}, nil
	}
	if length, err := document.ParseDuration(s.until); err == nil {
		return start.Add(length), nil
	}
	until, err := instantOf("--until", s.until, zone)
	if err == nil && until.Before(start) {
		err = usagef("--until: expected a time after --start, found %s", document.Found(s.until))
	}
	return until, err
}

// instantLayouts are wall clock times; a time may have its own zone as well.
var instantLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

func instantOf(flag, text string, zone *time.Location) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	for _, layout := range instantLayouts {
		if err == nil {
			break
		}
		at, err = time.ParseInLocation(layout, text, zone)
	}
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return at, usagef("%s: expected a time such as 2026-11-21T06:00 or 2026-11-21T06:00:00Z, found %s", flag, document.Found(text))
	}
	return at.UTC().Truncate(time.Millisecond), nil
}

func (s *simulation) readSeed() (uint64, error) {
	if s.seed == "" {
		return 1, nil
	}
	seed, err := strconv.ParseUint(s.seed, 10, 64)
	if err != nil {
		return 0, usagef("--seed: expected a whole number, found %s", document.Found(s.seed))
	}
	return seed, nil
}

// chance is the dice that the flags describe.
func (s *simulation) chance() (c simulate.Chance, err error) {
	if c.Seed, err = s.readSeed(); err != nil {
		return c, err
	}
	if c.Fail, err = share("--fail", s.fail, 0.05); err != nil {
		return c, err
	}
	if c.Lost, err = share("--lost", s.lost, 0.01); err != nil {
		return c, err
	}
	if together := 100 * (c.Fail + c.Lost); together > 100+1e-9 { // percentages are rarely whole in binary
		return c, usagef("--fail, --lost: expected at most 100%% together, found %.4g%%", together)
	}
	c.Shortest, c.Longest, err = lengths(s.duration)
	return c, err
}

// share reads a percentage as a number from 0 to 1.
func share(flag, text string, usual float64) (float64, error) {
	if text == "" {
		return usual, nil
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	if err != nil || !(number >= 0 && number <= 100) {
		return 0, usagef("%s: expected a percentage such as 5%%, found %s", flag, document.Found(text))
	}
	return number / 100, nil
}

// lengths reads a duration, or a range of them.
func lengths(text string) (shortest, longest time.Duration, err error) {
	if text == "" {
		return time.Minute, 5 * time.Minute, nil
	}
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	if shortest, err = document.ParseDuration(from); err == nil {
		longest, err = document.ParseDuration(to)
	}
	if err != nil || shortest > longest {
		err = usagef("--duration: expected a duration or a range such as 1m-5m, found %s", document.Found(text))
	}
	return shortest, longest, err
}
