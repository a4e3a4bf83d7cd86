package schedule

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/document"
)

// plenty is a budget that is never cut.
const plenty = 1 << 40

func unbounded() *budget { return new(budget(plenty)) }

// steps counts the steps of a search without a bound.
func steps(search func(b *budget)) int {
	b := unbounded()
	search(b)
	return int(plenty - *b)
}

// lastLook bounds by how much the last look may exceed a budget: each position of a BYSETPOS is one.
const lastLook = 2*366 + 10

// compileWithin is Parse with a budget that can be looked at afterwards.
func compileWithin(rule hostileRule, b *budget) (*Schedule, error) {
	z, err := loadZone(rule.Timezone)
	if err != nil {
		return nil, err
	}
	start, err := parseDtstart(rule.Dtstart)
	if err != nil {
		return nil, err
	}
	set, err := readRuleSet(rule.Text, z)
	if err != nil {
		return nil, err
	}
	return compile(set, z, start, b)
}

// Whatever the rule: it is refused, or answered, or cut short, within a number of steps.
func TestNoHostileRuleTakesMoreStepsThanItMay(t *testing.T) {
	r, n := rand.New(rand.NewPCG(8, 0)), long.Or(5_000, 12_000)
	rules := slices.Clone(worstRules)
	for range n {
		rules = append(rules, randomRule(r))
	}
	var questions []int
	refused, cut := 0, 0
	for _, rule := range rules {
		b := budget(maxAdmission)
		s, err := compileWithin(rule, &b)
		stopIf(t, b < -lastLook, "%s takes %d steps to compile", rule, maxAdmission-b)
		if err != nil {
			refused++
			continue
		}
		for range 3 {
			after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(5*365*86_400)) * time.Second)
			b := budget(maxSteps)
			s.next(after.Unix(), &b)
			stopIf(t, b < -lastLook, "%s takes %d steps after %s", rule, maxSteps-b, after)
			if b.cut() {
				cut++
			}
			questions = append(questions, int(maxSteps-b))
		}
	}
	slices.Sort(questions)
	half, most := questions[len(questions)/2], questions[len(questions)*99/100]
	t.Logf("%d rules, %d refused; of %d questions %d were cut short; half take %d steps, 99%% at most %d", len(rules), refused, len(questions), cut, half, most)
	if half > 30 || most > 250 || cut*500 > len(questions) {
		t.Error("want half of the questions answered in 30 steps, 99% in 250, and less than 1 of 500 cut short")
	}
}

func TestARuleSetThatTakesTooManyStepsIsRefused(t *testing.T) {
	yearly := "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=100;INTERVAL=3"
	for _, c := range []struct{ rule, zone, field string }{
		{"FREQ=SECONDLY;INTERVAL=86399;BYHOUR=0", "", "rrule"},
		{"FREQ=DAILY\nFREQ=SECONDLY;INTERVAL=86399;BYHOUR=0", "", "rrule line 2"},
		{strings.Repeat(yearly+"\n", 8), "", "rrule line 4"}, // one alone is fine
		{"FREQ=DAILY;COUNT=10000", "America/New_York", "rrule"},
		{"FREQ=WEEKLY;BYDAY=MO,FR;BYSETPOS=3;BYHOUR=0,1", "", ""}, // fine
		{yearly, "", ""},
	} {
		_, err := Parse(c.rule, c.zone, "2026-01-01")
		refused := (*document.Error)(nil)
		if errors.As(err, &refused); c.field == "" && err == nil {
			continue
		}
		failIf(t, refused == nil || refused.Field != c.field || !strings.HasPrefix(refused.Want, "rules that find their next occurrence in at most 750 steps"),
			"%q: got %v, want a refusal of %q for its steps", c.rule, err, c.field)
	}
}

// A rule may become dear long after its first occurrences: an hour of hits, one a day, and then none for centuries.
const lateDear = "FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0"

func TestASearchThatIsCutShortIsAnErrorAndNotTheEnd(t *testing.T) {
	s := check.Got(Parse(lateDear, "Europe/Berlin", "2026-01-01"))(t)
	at := time.Date(2026, 6, 1, 12, 0, 0, 5, time.UTC)
	_, found, err := s.Evaluate(at)
	refused := (*document.Error)(nil)
	failIf(t, found || !errors.As(err, &refused) || refused.Found != "more steps after 2026-06-01T12:00:00Z", "got %v, %v", found, err)
	next, found := s.Next(at)
	failIf(t, !found || !next.Equal(time.Date(2026, 6, 2, 12, 0, 0, 0, time.UTC)), "Next = %s, %v, want a day later", next, found)
	_, found, err = (Spread{Schedule: s, Phase: 0.5, Length: time.Hour}).Evaluate(at)
	failIf(t, found || err == nil, "spread: got %v, %v", found, err)
	window := &Window{s, time.Hour, s.zone}
	opens, err := window.Open(at)
	failIf(t, err == nil || !strings.HasPrefix(err.Error(), "retry_window: ") || !opens.Equal(at), "window: got %s, %v", opens, err)
}

func TestALineThatHasEndedIsNotSearchedAgain(t *testing.T) {
	for _, line := range []string{
		"FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;UNTIL=20280301T000000Z", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=4",
		"FREQ=HOURLY;INTERVAL=999983;BYDAY=SA", // ends because the year 2300 comes first
	} {
		s := check.Got(Parse(line, "America/New_York", "2026-01-03"))(t)
		last := time.Unix(0, 0)
		for next, found := s.Next(last); found; next, found = s.Next(last) {
			last = next
		}
		n := steps(func(b *budget) { s.next(last.Unix(), b) })
		failIf(t, n != 0, "%s: takes %d steps after its end, %s", line, n, last)
	}
}

func TestWhatWasDearToFindIsFoundOnce(t *testing.T) {
	s := check.Got(Parse("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "", "2026-01-01"))(t)
	day := time.Date(2050, 1, 1, 12, 0, 0, 0, time.UTC)
	ask := func() int { return steps(func(b *budget) { s.next(day.Unix(), b) }) }
	first := ask()
	for range 1_000 {
		day = day.AddDate(0, 0, 1)
		again := ask()
		stopIf(t, first < 40 || again > 10, "%d steps the first time, %d after %s", first, again, day)
	}
}

// Seldom lines would be searched for centuries. What is searched up to the next occurrence of another line is searched once.
func TestALineThatSeldomOccursIsSearchedNoFartherThanToTheNextOccurrenceOfAnother(t *testing.T) {
	for _, c := range []struct {
		rule                string
		dearest, mostOfThem int
	}{
		{lateDear + "\nFREQ=DAILY", 25, 25}, {"FREQ=DAILY\n" + lateDear, 25, 25}, {lateDear + "\nFREQ=MONTHLY", 100, 20},
		{lateDear + "\nFREQ=YEARLY", 1_000, 20},
	} {
		s := check.Got(Parse(c.rule, "Europe/Berlin", "2026-01-01"))(t)
		var questions []int
		for hour := range 300 * 24 {
			after := time.Date(2026, 6, 1, hour, 0, 0, 0, time.UTC).Unix()
			questions = append(questions, steps(func(b *budget) { s.next(after, b) }))
		}
		slices.Sort(questions)
		if dearest, others := questions[len(questions)-1], questions[len(questions)*99/100]; dearest > c.dearest || others > c.mostOfThem {
			t.Errorf("%q: one question takes %d steps, 99%% at most %d; want at most %d and %d", c.rule, dearest, others, c.dearest, c.mostOfThem)
		}
	}
}

// In any order of the questions, also backwards as a spread asks.
func TestWhatIsRememberedNeverChangesAnAnswer(t *testing.T) {
	r, want := rand.New(rand.NewPCG(5, 0)), long.Or(300, 800)
	zones := []string{"", "Europe/Berlin", "Pacific/Apia", "Australia/Lord_Howe"}
	for want > 0 {
		rule := randomRule(r)
		zone := zones[r.IntN(len(zones))]
		s, err := Parse(rule.Text, zone, rule.Dtstart)
		if err != nil {
			continue
		}
		want--
		center := time.Date(2011+r.IntN(20), 12, 29, 0, 0, 0, 0, time.UTC)
		for range 12 {
			after := center.Add(time.Duration(r.Int64N(1<<(5+r.IntN(26)))) * time.Second)
			fresh := check.Got(Parse(rule.Text, zone, rule.Dtstart))(t)
			wantAt, wantFound, wantErr := fresh.Evaluate(after)
			at, found, err := s.Evaluate(after)
			stopIf(t, err == nil && wantErr == nil && (found != wantFound || !at.Equal(wantAt)),
				"%s in %q: after %s comes %s, %v; without memory %s, %v", rule, zone, after, at, found, wantAt, wantFound)
		}
	}
}
