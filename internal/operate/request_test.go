package operate

import (
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
	refusals{
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
