package operate

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// refusedField is the field that a request is refused for; "-": it is not refused, "?": for no field.
func refusedField(err error) string {
	refusal, is := errors.AsType[*document.Error](err)
	switch {
	case err == nil:
		return "-"
	case is:
		return refusal.Field
	default:
		return "?"
	}
}

func TestAnEndIsReadAsATimeOrALength(t *testing.T) {
	six := fixture.SixOClock
	for name, row := range map[string]struct {
		ending Ending
		want   time.Time // zero: none
		field  string
	}{
		"none":                      {Ending{}, time.Time{}, "-"},
		"a length":                  {Ending{For: "2h"}, six.Add(2 * time.Hour), "-"},
		"a length or a time":        {Ending{End: "90m"}, six.Add(90 * time.Minute), "-"},
		"a time, to the ms":         {Ending{Until: "2026-11-21T08:00:00.1239+01:00"}, six.Add(time.Hour + 123*time.Millisecond), "-"},
		"a time or a length":        {Ending{End: "2026-11-21T06:30:00Z"}, six.Add(30 * time.Minute), "-"},
		"both":                      {Ending{Until: "2026-11-21T08:00:00Z", For: "2h"}, time.Time{}, "until"},
		"now":                       {Ending{Until: "2026-11-21T06:00:00Z"}, time.Time{}, "until"},
		"no time":                   {Ending{Until: "tomorrow"}, time.Time{}, "until"},
		"no length":                 {Ending{For: "soon"}, time.Time{}, "for"},
		"a length of nothing":       {Ending{For: "0s"}, time.Time{}, "for"},
		"neither time nor length":   {Ending{End: "soon"}, time.Time{}, "end"},
		"a time of a length's past": {Ending{End: "2026-11-21T05:00:00Z"}, time.Time{}, "end"},
	} {
		at, err := row.ending.at(six)
		if got := refusedField(err); got != row.field || err == nil && !at.Equal(row.want) {
			t.Errorf("%s: got %v, refused %s; want %v, %s", name, at, got, row.want, row.field)
		}
	}
}

func TestANameOfWhoAsksIsOneShortLine(t *testing.T) {
	for text, want := range map[string]string{"": "-", "ann": "-", strings.Repeat("a", model.MaxBy): "-", strings.Repeat("a", model.MaxBy+1): "by", "ann\nbob": "by"} {
		by, err := ReadBy(text)
		if got := refusedField(err); got != want || err == nil && by != text {
			t.Errorf("%q: got %q, refused %s, want %s", text, by, got, want)
		}
	}
}

func TestASpreadIsBetweenNothingAndItsMost(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "0s": 0, "10m": 10 * time.Minute, document.FormatDuration(model.MaxWithin): model.MaxWithin} {
		if got, err := readWithin(text); got != want || err != nil {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"-1s", "soon", document.FormatDuration(model.MaxWithin + time.Second)} {
		if _, err := readWithin(text); refusedField(err) != "within" {
			t.Errorf("%q: got %v, want it refused", text, err)
		}
	}
}

func TestALengthIsWithinItsBounds(t *testing.T) {
	for text, want := range map[string]string{"1s": "-", "1m": "-", "999ms": "tick", "61s": "tick", "x": "tick"} {
		if _, err := readLength("tick", text, time.Second, time.Minute, "1s to 1m"); refusedField(err) != want {
			t.Errorf("%s: got %v, want refused %s", text, err, want)
		}
	}
}

// refusals maps requests to the field that is refused.
type refusals map[string]struct {
	validate func() error
	field    string
}

func (all refusals) expect(t *testing.T) {
	t.Helper()
	for name, row := range all {
		err := row.validate()
		_, is := errors.AsType[Refusal](err)
		if got := refusedField(err); got != row.field || is != (row.field != "-") {
			t.Errorf("%s: got %v of field %s, want %s", name, err, got, row.field)
		}
	}
}

func TestARequestIsRefusedByTheFieldThatIsWrongForAnyQueue(t *testing.T) {
	simulation := func(r SimulateRequest) func() error { return r.validate }
	freshness := func(r FreshnessRequest) func() error { return r.Validate }
	shadow := func(change func(*ShadowRequest)) func() error {
		r := ShadowRequest{Format: "csv", Within: "1m", Timezone: "UTC"}
		change(&r)
		return func() error { return r.Validate("q") }
	}
	settings := func(r SettingsRequest) func() error { return r.Validate }
	next := func(r OccurrencesRequest) func() error {
		return func() error { return only(NextOccurrences(r, fixture.SixOClock)) }
	}
	open := func(key, probe string) func() error {
		return func() error { return only(Operator{}.OpenCircuit(t.Context(), key, probe, "")) }
	}
	bulk := func(r BulkRequest) func() error {
		return func() error { return only(Operator{}.BeginBulk(t.Context(), r)) }
	}
	release := func(r ReleaseRequest) func() error { return r.Validate }
	forecast := func(r ForecastRequest) func() error {
		r.Spread = cmp.Or(r.Spread, "0s")
		return func() error { r.For = cmp.Or(r.For, "1h"); return r.Validate() }
	}
	drain := func(text string) func() error {
		return forecast(ForecastRequest{InputRequest: InputRequest{Drain: text}})
	}
	level := func(r LevelRequest) func() error {
		r.For, r.Within = cmp.Or(r.For, "1h"), cmp.Or(r.Within, "10m")
		return r.Validate
	}
	list := func(r ListRequest) func() error { return r.Validate }
	messages := func(m Messages) func() error { return func() error { return m.Validate("a rejected") } }
	refusals{
		"forecast":                           {forecast(ForecastRequest{}), "-"},
		"forecast: a month":                  {forecast(ForecastRequest{InputRequest: InputRequest{For: "31d"}}), "-"},
		"forecast: more than a month":        {forecast(ForecastRequest{InputRequest: InputRequest{For: "745h"}}), "for"},
		"forecast: less than a minute":       {forecast(ForecastRequest{InputRequest: InputRequest{For: "59s"}}), "for"},
		"forecast: no selector":              {forecast(ForecastRequest{InputRequest: InputRequest{Selector: "?"}}), "selector"},
		"forecast: no spread":                {forecast(ForecastRequest{Spread: "x"}), "spread"},
		"forecast: no group":                 {forecast(ForecastRequest{By: "x"}), "by"},
		"forecast: by host":                  {forecast(ForecastRequest{By: "host"}), "-"},
		"forecast: a drain":                  {drain("600/m"), "-"},
		"forecast: a drain of a second":      {drain("10/1s"), "-"},
		"forecast: a drain of an hour":       {drain(" 20000/h"), "-"},
		"forecast: a drain of no number":     {drain("x/m"), "drain"},
		"forecast: a drain of no unit":       {drain("10/x"), "drain"},
		"forecast: a drain of nothing":       {drain("0/m"), "drain"},
		"forecast: too large a drain":        {drain("2e9/m"), "drain"},
		"level":                              {level(LevelRequest{Plan: true}), "-"},
		"level: plan and apply":              {level(LevelRequest{Plan: true, Apply: true}), ""},
		"level: plan and clear":              {level(LevelRequest{Plan: true, Clear: true}), ""},
		"level: apply and clear":             {level(LevelRequest{Apply: true, Clear: true}), ""},
		"level: too short":                   {level(LevelRequest{Within: "1s"}), "within"},
		"level: too long":                    {level(LevelRequest{Within: "25h"}), "within"},
		"level: no time":                     {level(LevelRequest{InputRequest: InputRequest{For: "x"}}), "for"},
		"list":                               {list(ListRequest{Selector: "tenant=t1", Status: "failing", Prefix: "m", Sort: "due"}), "-"},
		"list: no status":                    {list(ListRequest{Status: "x"}), "status"},
		"list: no order":                     {list(ListRequest{Sort: "x"}), "sort"},
		"list: no selector":                  {list(ListRequest{Selector: "?"}), "selector"},
		"list: no cursor":                    {list(ListRequest{After: "?"}), "after"},
		"messages: one":                      {messages(Messages{IDs: []string{"a"}}), "-"},
		"messages: all":                      {messages(Messages{All: true}), "-"},
		"messages: none":                     {messages(Messages{}), ""},
		"messages: both":                     {messages(Messages{IDs: []string{"a"}, All: true}), ""},
		"messages: a group":                  {messages(Messages{Group: "a"}), "-"},
		"messages: a group and all":          {messages(Messages{Group: "a", All: true}), ""},
		"slots: too far ahead":               {func() error { return only(PlanSlots(t.Context(), nil, "61m")) }, "horizon"},
		"simulate: a policy":                 {simulation(SimulateRequest{Policy: "p"}), "-"},
		"simulate: nothing":                  {simulation(SimulateRequest{}), "policy"},
		"simulate: one input":                {simulation(SimulateRequest{Policy: "-", Against: "p"}), "-"},
		"simulate: one input for two":        {simulation(SimulateRequest{Policy: "-", Against: "-"}), "?"},
		"simulate: outcomes by chance too":   {simulation(SimulateRequest{Policy: "p", Outcomes: "o", Seed: "1"}), "outcomes"},
		"simulate: metrics":                  {simulation(SimulateRequest{Policy: "p", Metrics: "m"}), "-"},
		"simulate: metrics against a policy": {simulation(SimulateRequest{Policy: "p", Metrics: "m", Against: "q"}), "metrics"},
		"simulate: metrics by chance":        {simulation(SimulateRequest{Policy: "p", Metrics: "m", Lost: "1%"}), "metrics"},
		"simulate: metrics for days":         {simulation(SimulateRequest{Policy: "p", Metrics: "m", Days: 1}), "metrics"},
		"simulate: metrics up to a limit":    {simulation(SimulateRequest{Policy: "p", Metrics: "m", Limit: 1}), "metrics"},
		"simulate: two ends":                 {simulation(SimulateRequest{Policy: "p", Until: "1d", Days: 1}), "until"},
		"simulate: most days":                {simulation(SimulateRequest{Policy: "p", Days: maxDays}), "-"},
		"simulate: too many days":            {simulation(SimulateRequest{Policy: "p", Days: maxDays + 1}), "days"},
		"simulate: days before":              {simulation(SimulateRequest{Policy: "p", Days: -1}), "days"},
		"simulate: most attempts":            {simulation(SimulateRequest{Policy: "p", Limit: maxAttempts}), "-"},
		"simulate: too many attempts":        {simulation(SimulateRequest{Policy: "p", Limit: maxAttempts + 1}), "limit"},
		"simulate: attempts before":          {simulation(SimulateRequest{Policy: "p", Limit: -1}), "limit"},
		"simulate: no seed":                  {simulation(SimulateRequest{Policy: "p", Seed: "x"}), "seed"},
		"simulate: no share":                 {simulation(SimulateRequest{Policy: "p", Fail: "x"}), "fail"},
		"simulate: no share of the lost":     {simulation(SimulateRequest{Policy: "p", Lost: "x"}), "lost"},
		"simulate: all fail":                 {simulation(SimulateRequest{Policy: "p", Fail: "100%"}), "-"},
		"simulate: all are lost":             {simulation(SimulateRequest{Policy: "p", Lost: "100%"}), "-"},
		"simulate: all, of two":              {simulation(SimulateRequest{Policy: "p", Fail: "70%", Lost: "30%"}), "-"},
		"simulate: more than all":            {simulation(SimulateRequest{Policy: "p", Fail: "70%", Lost: "31%"}), "fail"},
		"simulate: no length":                {simulation(SimulateRequest{Policy: "p", Duration: "x"}), "duration"},
		"freshness":                          {freshness(FreshnessRequest{Histogram: true, Selector: "tenant=t1"}), "-"},
		"freshness: of then":                 {freshness(FreshnessRequest{At: "2026-11-21T06:00:00Z"}), "-"},
		"freshness: no selector":             {freshness(FreshnessRequest{Selector: "?"}), "selector"},
		"freshness: no time":                 {freshness(FreshnessRequest{At: "then"}), "at"},
		"freshness: of some models then":     {freshness(FreshnessRequest{At: "2026-11-21T06:00:00Z", Selector: "tenant=t1"}), "at"},
		"freshness: a histogram of then":     {freshness(FreshnessRequest{At: "2026-11-21T06:00:00Z", Histogram: true}), "at"},
		"shadow":                             {shadow(func(*ShadowRequest) {}), "-"},
		"shadow: no format":                  {shadow(func(r *ShadowRequest) { r.Format = "pdf" }), "format"},
		"shadow: no columns":                 {shadow(func(r *ShadowRequest) { r.Columns = "x" }), "columns"},
		"shadow: no outcomes":                {shadow(func(r *ShadowRequest) { r.Outcomes = "x" }), "outcomes"},
		"shadow: no zone":                    {shadow(func(r *ShadowRequest) { r.Timezone = "Mars/Base" }), "timezone"},
		"shadow: no tolerance":               {shadow(func(r *ShadowRequest) { r.Within = "x" }), "within"},
		"shadow: no begin":                   {shadow(func(r *ShadowRequest) { r.From = "x" }), "from"},
		"shadow: no end":                     {shadow(func(r *ShadowRequest) { r.Until = "x" }), "until"},
		"settings: none":                     {settings(SettingsRequest{}), "settings"},
		"settings: a name":                   {settings(SettingsRequest{ModelName: "id"}), "-"},
		"settings: a number":                 {settings(SettingsRequest{NewErrorAbove: new(0)}), "-"},
		"settings: a number below 0":         {settings(SettingsRequest{NewErrorAbove: new(-1)}), "new-error-above"},
		"settings: a place":                  {settings(SettingsRequest{Payload: "nested"}), "-"},
		"settings: no place":                 {settings(SettingsRequest{Payload: "below"}), "payload"},
		"release: a hold":                    {release(ReleaseRequest{ID: "h1"}), "-"},
		"release: the only hold":             {release(ReleaseRequest{Only: true}), "-"},
		"release: no id":                     {release(ReleaseRequest{ID: "a b"}), "id"},
		"release: no spread":                 {release(ReleaseRequest{Only: true, Within: "x"}), "within"},
		"circuit: a key of policies":         {func() error { return Operator{}.SetCircuit(t.Context(), "host=h", CircuitSettings{On: true}) }, "key"},
		"circuit: opened for a template":     {open("{host(input_url)}", ""), "key"},
		"circuit: opened for no key":         {open("a b", ""), "key"},
		"circuit: opened for no time":        {open("host=h", "x"), "probe"},
		"circuit: opened for a time of 0":    {open("host=h", "0s"), "probe"},
		"queue: no part":                     {func() error { return CreateQueue(t.Context(), nil, store.Config{}, 0) }, "parts"},
		"bulk: all models":                   {bulk(BulkRequest{Action: model.CommandRun}), "selector"},
		"bulk: removal": {func() error {
			return only(Operator{}.BeginBulk(t.Context(), BulkRequest{Action: model.CommandRemove, Selector: "uid=x"}))
		}, "selector"},
		"bulk: no rate":               {bulk(BulkRequest{Rate: "fast", Sure: true}), "rate"},
		"limit: running of no number": {func() error { return Operator{}.SetLimit(t.Context(), LimitRequest{Key: "host=h", Running: "x"}) }, "running"},
		"limit: no rate":              {func() error { return Operator{}.SetLimit(t.Context(), LimitRequest{Key: "host=h", Rate: "fast"}) }, "rate"},
		"occurrences: none asked for": {next(OccurrencesRequest{Rule: "@daily"}), "count"},
		"occurrences: more than are printed": {func() error {
			return only(NextOccurrences(OccurrencesRequest{Rule: "@daily", Count: maxOccurrences + 1}, fixture.SixOClock))
		}, "count"},
		"occurrences: no rule": {next(OccurrencesRequest{Rule: "?", Count: 1}), "rule"},
		"occurrences: no zone": {func() error {
			return only(NextOccurrences(OccurrencesRequest{Rule: "@daily", Timezone: "Mars/Base", Count: 1}, fixture.SixOClock))
		}, "timezone"},
		"occurrences: no begin of the answers": {func() error {
			return only(NextOccurrences(OccurrencesRequest{Rule: "@daily", After: "x", Count: 1}, fixture.SixOClock))
		}, "after"},
	}.expect(t)
}

func TestADrainIsAttemptsAMinute(t *testing.T) {
	for text, want := range map[string]float64{"600/m": 600, "10/s": 600, "10/1s": 600, "6/min": 6, "1200/h": 20} {
		r := InputRequest{For: "1h", Drain: text}
		if err := r.validate(); err != nil || r.perMinute != want || r.ahead != time.Hour {
			t.Errorf("%s: got %v for %v, %v, want %v", text, r.perMinute, r.ahead, err, want)
		}
	}
}

func TestTheRestOfAnAttemptIsWhatItStillTakes(t *testing.T) {
	m := &model.Model{State: model.State{StartedAt: fixture.SixOClock}}
	for after, want := range map[time.Duration]time.Duration{time.Minute: 4 * time.Minute, 5 * time.Minute: 5 * time.Minute, time.Hour: 5 * time.Minute} {
		if got := left(m, 5*time.Minute, fixture.SixOClock.Add(after)); got != want {
			t.Errorf("after %v: got %v, want %v", after, got, want)
		}
	}
}

func TestWorkersForAnHourAreThoseOfItsBusiestMinute(t *testing.T) {
	six, hour := fixture.SixOClock, fixture.SixOClock.Add(time.Hour)
	at := func(minute int, took time.Duration) plannedAttempt {
		return plannedAttempt{six.Add(time.Duration(minute) * time.Minute), took}
	}
	for name, row := range map[string]struct {
		attempts []plannedAttempt
		want     int
	}{
		"none":               {nil, 0},
		"one that is short":  {[]plannedAttempt{at(1, time.Second)}, 1},
		"two side by side":   {[]plannedAttempt{at(1, 2*time.Minute), at(1, 2*time.Minute)}, 2},
		"two in turn":        {[]plannedAttempt{at(1, time.Minute), at(10, time.Minute)}, 1},
		"one is not known":   {[]plannedAttempt{at(1, 2*time.Minute), at(1, 0)}, 2},
		"none of them known": {[]plannedAttempt{at(1, 0), at(1, 0)}, 1},
	} {
		if got := (&planned{now: six, attempts: row.attempts}).slots(hour); got != row.want {
			t.Errorf("%s: got %d, want %d", name, got, row.want)
		}
	}
}
