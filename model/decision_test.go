package model

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func TestWhatEndsAnAttemptThatIsQueuedTakesItsEntryBack(t *testing.T) {
	takes := []Event{EventTimeout, EventWithdrawn, EventOutdated, EventRun, EventCancel, EventDisable, EventRemove, EventImport}
	others := []Event{EventStart, EventSuccess, EventFailure, EventStarted, EventEnable, EventUpdate, EventSkipped, EventParked, EventReplan}
	for _, event := range slices.Concat(takes, others) {
		got := (&Decision{Event: event}).TakesBack()
		failIf(t, got != slices.Contains(takes, event), "%s: %t", event, got)
	}
	failIf(t, !(&Decision{Event: EventUpdate, Message: "{}"}).TakesBack(), "a new entry leaves the old one")
}

func TestEachCounterCountsItsOwnDecisions(t *testing.T) {
	yes, no := true, false
	ended := func(number int, change func(*Attempt)) *Attempt {
		one := &Attempt{AttemptNo: number}
		if change != nil {
			change(one)
		}
		return one
	}
	circuit := QueueCircuit{On: true, Window: 10 * time.Second}
	for name, test := range map[string]struct {
		decision Decision
		circuit  QueueCircuit
		want     string
	}{
		"a mend":                 {Decision{Event: EventMend}, circuit, ""},
		"a start":                {Decision{Event: EventStart, Next: State{AttemptNo: 1}}, circuit, "start"},
		"a start of a retry":     {Decision{Event: EventStart, Next: State{AttemptNo: 2}}, circuit, "start retry"},
		"an update":              {Decision{Event: EventUpdate, Next: State{AttemptNo: 2}}, circuit, "update"},
		"a success":              {Decision{Event: EventSuccess, Ended: ended(1, nil)}, QueueCircuit{}, "success"},
		"a success that changed": {Decision{Event: EventSuccess, Ended: ended(1, func(a *Attempt) { a.Changed = &yes })}, QueueCircuit{}, "success"},
		"one that did not":       {Decision{Event: EventSuccess, Ended: ended(1, func(a *Attempt) { a.Changed = &no })}, QueueCircuit{}, "success success_unchanged"},
		"a failure that did not": {Decision{Event: EventFailure, Ended: ended(1, func(a *Attempt) { a.Changed = &no })}, QueueCircuit{}, "failure"},
		"the first retry helps":  {Decision{Event: EventSuccess, Ended: ended(2, nil)}, QueueCircuit{}, "success total_retries successful_retries retried_cycles"},
		"the second retry helps": {Decision{Event: EventSuccess, Ended: ended(3, nil)}, QueueCircuit{}, "success total_retries successful_retries"},
		"the first retry fails":  {Decision{Event: EventTimeout, Ended: ended(2, nil)}, QueueCircuit{}, "timeout total_retries retried_cycles"},
		"a postponed retry":      {Decision{Event: EventPostponed, Ended: ended(2, nil)}, circuit, "postponed"},
		"a final failure":        {Decision{Event: EventFailure, Ended: ended(1, nil), Exhausted: true, Final: true}, QueueCircuit{}, "failure retries_exhausted final_failure"},
		"a held failure":         {Decision{Event: EventFailure, Ended: ended(1, nil), Held: true}, QueueCircuit{}, "failure held"},
		"a recovery":             {Decision{Event: EventSuccess, Notice: policy.NoticeRecovered}, QueueCircuit{}, "success recovered"},
		"an error of the policy": {Decision{Event: EventFailure, PolicyError: "x"}, QueueCircuit{}, "failure policy_error"},
		"two ignored fields":     {Decision{Event: EventStarted, Ignored: []string{"a", "b"}}, QueueCircuit{}, "started ignored_fields ignored_fields"},
		"a late result":          {Decision{Event: EventSuccess, Late: true}, QueueCircuit{}, "success late"},
		"a late answer":          {Decision{Event: EventLate, Ended: ended(0, func(a *Attempt) { a.Late = 3 * time.Second })}, QueueCircuit{}, "late_answer late late_within_3s"},
		"a later one":            {Decision{Event: EventLate, Ended: ended(0, func(a *Attempt) { a.Late = 3*time.Second + 1 })}, QueueCircuit{}, "late_answer late late_within_1m"},
		"one within a minute":    {Decision{Event: EventLate, Ended: ended(0, func(a *Attempt) { a.Late = time.Minute })}, QueueCircuit{}, "late_answer late late_within_1m"},
		"the latest":             {Decision{Event: EventLate, Ended: ended(0, func(a *Attempt) { a.Late = time.Minute + 1 })}, QueueCircuit{}, "late_answer late late_longer"},
		"fresh again, was late":  {Decision{Event: EventSuccess, PriorFreshness: FreshnessLate, Next: State{Freshness: Fresh}}, QueueCircuit{}, "success fresh_again"},
		"fresh again, was stale": {Decision{Event: EventSuccess, PriorFreshness: FreshnessStale, Next: State{Freshness: Fresh}}, QueueCircuit{}, "success fresh_again"},
		"fresh, as before":       {Decision{Event: EventSuccess, PriorFreshness: Fresh, Next: State{Freshness: Fresh}}, QueueCircuit{}, "success"},
		"fresh, never before":    {Decision{Event: EventSuccess, PriorFreshness: FreshnessNever, Next: State{Freshness: Fresh}}, QueueCircuit{}, "success"},
		"stale, was late":        {Decision{Event: EventWatch, PriorFreshness: FreshnessLate, Next: State{Freshness: FreshnessStale}}, QueueCircuit{}, "watch"},
		"a success, circuit on":  {Decision{Event: EventSuccess, Ended: ended(1, nil)}, circuit, "success @ok.1767571200000"},
		"a failure, circuit on":  {Decision{Event: EventFailure, Ended: ended(1, nil)}, circuit, "failure @failed.1767571200000"},
	} {
		got := strings.Join(test.decision.Counters(test.circuit, monday.Add(999*time.Millisecond)), " ")
		want := strings.NewReplacer("retries_exhausted", counterExhausted, "final_failure", counterFinalFailure, "policy_error", counterPolicyError).Replace(test.want)
		failIf(t, got != want, "%s: got %q, want %q", name, got, want)
	}
}

func TestLateAnswersAreAddedUpAndTheLatestSaysHowLate(t *testing.T) {
	for _, test := range []struct {
		counters map[string]int64
		want     string
	}{
		{nil, ""},
		{map[string]int64{counterWithin3s: 1}, "1 answer came up to 3 s after their deadline, and did not count"},
		{map[string]int64{counterWithin3s: 2, counterWithin1m: 3}, "5 answers came up to a minute after their deadline, and did not count"},
		{map[string]int64{counterWithin3s: 2, counterLonger: 1}, "3 answers came more than a minute after their deadline, and did not count"},
	} {
		got := LateAnswers(test.counters)
		failIf(t, got != test.want, "%v: got %q, want %q", test.counters, got, test.want)
	}
}

func TestTheCircuitOfTheQueueCountsInTenthsOfItsWindow(t *testing.T) {
	c := QueueCircuit{Window: 100 * time.Second}
	for after, same := range map[time.Duration]bool{0: true, 10*time.Second - 1: true, 10 * time.Second: false, -1: false} {
		got := c.Counter(true, monday.Add(after)) == c.Counter(true, monday)
		failIf(t, got != same, "%s after the begin of a tenth: the same counter: %t", after, got)
	}
	failIf(t, (QueueCircuit{}).Counter(true, monday) != "", "without a window: %q", (QueueCircuit{}).Counter(true, monday))
}

func TestAnAttemptKnowsItsWaitAndItsWorkIfItsWorkerReportedTheBegin(t *testing.T) {
	at := func(s int) time.Time { return monday.Add(time.Duration(s) * time.Second) }
	for name, test := range map[string]struct {
		attempt    Attempt
		wait, took time.Duration
		known      bool
	}{
		"not reported":              {Attempt{StartedAt: at(0), EndedAt: at(9), Duration: 9 * time.Second}, 0, 9 * time.Second, false},
		"reported":                  {Attempt{StartedAt: at(0), ProcessingAt: at(2), EndedAt: at(9)}, 2 * time.Second, 7 * time.Second, true},
		"the clock went back":       {Attempt{StartedAt: at(5), ProcessingAt: at(2), EndedAt: at(9)}, 0, 7 * time.Second, true},
		"the clock went back twice": {Attempt{StartedAt: at(5), ProcessingAt: at(4), EndedAt: at(3)}, 0, 0, true},
	} {
		wait, took, known := test.attempt.Lengths()
		failIf(t, wait != test.wait || took != test.took || known != test.known, "%s: got %s, %s, %t", name, wait, took, known)
	}
}

func TestARetryIsDisplacedIfThePlannedRefreshComesInItsPlace(t *testing.T) {
	planned, retry := monday.Add(time.Hour), monday.Add(time.Minute)
	for name, test := range map[string]struct {
		attempt Attempt
		want    time.Time
	}{
		"planned comes":        {Attempt{PlannedAt: planned, RetryAt: retry, RefreshAt: planned}, retry},
		"the retry comes":      {Attempt{PlannedAt: planned, RetryAt: retry, RefreshAt: retry}, time.Time{}},
		"nothing is planned":   {Attempt{RetryAt: retry}, time.Time{}},
		"both at one instant":  {Attempt{PlannedAt: planned, RetryAt: planned, RefreshAt: planned}, time.Time{}},
		"something else comes": {Attempt{PlannedAt: planned, RetryAt: retry, RefreshAt: monday}, time.Time{}},
	} {
		got := test.attempt.DisplacedRetry()
		failIf(t, !got.Equal(test.want), "%s: got %s, want %s", name, got, test.want)
	}
}

func TestALabelIsShortAndOfFewSigns(t *testing.T) {
	for _, test := range []struct {
		name, value string
		good        bool
	}{
		{"a", "v", true},
		{"z9_.-", "zZ09_.:/@+-", true},
		{strings.Repeat("x", 32), strings.Repeat("x", 60), true},
		{strings.Repeat("x", 33), "v", false},
		{"a", strings.Repeat("x", 61), false},
		{"", "v", false},
		{"a", "", false},
		{"0a", "v", false},
		{"_a", "v", false},
		{"A", "v", false},
		{"a:b", "v", false},
		{"a", "v w", false},
		{"a", "é", false},
		{"a`", "v", false},
		{"a{", "v", false},
		{"uid", "v", false},
	} {
		err := ValidateLabel(test.name, test.value)
		failIf(t, err == nil != test.good, "%s=%s: %v", test.name, test.value, err)
	}
}

func TestAModelStartsAtItsTimeOrNow(t *testing.T) {
	later := monday.Add(time.Hour)
	for name, test := range map[string]struct {
		model Model
		want  time.Time
	}{
		"later":                {Model{State: State{RefreshAt: later}}, later},
		"due since an hour":    {Model{State: State{RefreshAt: monday.Add(-time.Hour)}}, monday},
		"running":              {Model{State: State{RefreshAt: later, AttemptUID: "x"}}, time.Time{}},
		"parked":               {Model{State: State{RefreshAt: later, ParkedBy: "hold:h"}}, time.Time{}},
		"disabled":             {Model{State: State{RefreshAt: later, Disabled: true}}, time.Time{}},
		"nothing to wait for":  {Model{}, time.Time{}},
		"it may skip, is late": {Model{Policy: policyOf(t, `{"misfire":"skip"}`), State: State{RefreshAt: later}}, later},
	} {
		test.model.Payload = "{}"
		got := test.model.StartsAt(monday)
		failIf(t, !got.Equal(test.want), "%s: got %s, want %s", name, got, test.want)
	}
}
