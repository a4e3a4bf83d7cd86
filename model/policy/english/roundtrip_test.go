package english

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model/policy"
)

// reporter is a *testing.T or a *rapid.T.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// canonical is the text of the policy that a document describes, completed with the built-in one.
func canonical(t reporter, doc map[string]any) string {
	t.Helper()
	return completed(t, doc, policy.Default())
}

func completed(t reporter, doc map[string]any, usual policy.Policy) string {
	t.Helper()
	draft, err := policy.Read(doc)
	if err != nil {
		t.Fatalf("%v: %v", doc, err)
	}
	policy, _ := draft.Complete(usual) // it may be larger than one that is stored
	text, err := json.Marshal(policy)
	if err != nil {
		t.Fatalf("%v: %v", doc, err)
	}
	return string(text)
}

func printed(t reporter, text string) string {
	t.Helper()
	return Print(stored(t, text))
}

func stored(t reporter, text string) policy.Policy {
	t.Helper()
	doc := make(map[string]any)
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := policy.ParseStored(doc)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// checkPrint demands that a policy is printed so that it reads back to the letter.
func checkPrint(t reporter, policy string) {
	t.Helper()
	sentences := printed(t, policy)
	again, _, err := Parse(sentences)
	if err != nil {
		t.Fatalf("%s\nis printed as\n%s%v", policy, sentences, err)
	}
	if diff := cmp.Diff(policy, completed(t, again, ofTheHouse)); diff != "" {
		t.Fatalf("is printed as\n%s-want +got\n%s", sentences, diff)
	}
}

// ofTheHouse could complete a policy: it says something of everything.
var ofTheHouse = policy.Policy{
	Rule: "FREQ=DAILY", Timezone: "Asia/Tokyo", Dtstart: "2026-01-01T00:00:00", Timeout: time.Hour, QueueTimeout: time.Minute, SilentAfter: 2 * time.Minute,
	Retries: policy.Delays{7 * time.Minute}, Jitter: 0.3, Alignment: policy.UntilSuccess, OnExhausted: policy.GiveUp, GiveUpAfter: 99 * time.Hour,
	Classes: policy.Classes{Never: []string{"Gone"}, Delays: map[string]time.Duration{"Busy": time.Hour}}, RetryWindow: "FREQ=DAILY;BYHOUR=9",
	Misfire: policy.Misfire{Limited: true}, Spread: time.Minute, Muted: []policy.Notice{policy.NoticeDisabled}, DisabledReason: "Sorry.",
	Limits:          []policy.Limit{{Key: policy.Key{Kind: policy.KeyHost, Field: "input_url"}, Running: 4}},
	Circuit:         &policy.Circuit{Key: policy.Key{Kind: policy.KeyPolicy}, Failures: 5, Of: 10, On: []string{"timeout"}, Probe: time.Hour},
	RetryAfterScope: policy.ScopeModel, Closed: []string{"holidays"}, FreshWithin: 26 * time.Hour, WarnWithin: 24 * time.Hour,
	Guard: []policy.Guard{{Metric: "rows", Rule: policy.GuardMin, Bound: 1}}, OnSuspect: policy.SuspectHold,
}

func TestEveryPolicyIsPrintedSoThatItReadsBackToTheLetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkPrint(t, canonical(t, somePolicy(t))) })
}

func TestAPolicyIsPrintedBesideTheOneThatCompletesItWithoutWhatBothHaveNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, known := range []policy.Policy{policy.Default(), ofTheHouse} {
			want := canonical(t, somePolicy(t))
			sentences := PrintBeside(stored(t, want), known)
			again, _, err := Parse(sentences)
			if err != nil {
				t.Fatalf("%s\nis printed as\n%s%v", want, sentences, err)
			}
			if diff := cmp.Diff(want, completed(t, again, known)); diff != "" {
				t.Fatalf("is printed as\n%s-want +got\n%s", sentences, diff)
			}
		}
	})
	text := PrintBeside(policy.Default(), policy.Default())
	if lines := strings.Count(text, "\n"); lines != 6 || strings.Contains(text, "Open no circuit") {
		t.Errorf("expected the default policy in six lines, found\n%s", text)
	}
	if text := PrintBeside(policy.Default(), ofTheHouse); !strings.Contains(text, "Open no circuit") || strings.Contains(text, "Send no e-mail") {
		t.Errorf("expected what the other one has and this one has not, found\n%s", text)
	}
}

// somePolicy draws a document that the model accepts, of every field.
func somePolicy(t *rapid.T) map[string]any {
	doc := make(map[string]any)
	for _, field := range []struct {
		name string
		draw *rapid.Generator[any]
	}{
		{"name", rapid.StringMatching(`[A-Za-hj-z0-9][\w.:@/+=~-]{0,30}`).AsAny()},
		{"timezone", rapid.SampledFrom([]string{"Europe/Berlin", "UTC", "America/Port-au-Prince", "Etc/GMT+3", "Asia/Kolkata"}).AsAny()},
		{"timeout", rapid.OneOf(someLength(1).AsAny(), rapid.Just[any]("none"))},
		{"queue_timeout", someLength(0).AsAny()}, {"retries", someRetries()},
		{"jitter", rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.2, 0.07, 1, 5e-324})).AsAny()},
		{"alignment", rapid.SampledFrom([]string{"align_planned", "until_success", "planned_only", "whichever_first", "between_planned"}).AsAny()},
		{"alignment", rapid.SampledFrom([]any{map[string]any{"expr": "retry_at + timeout > planned_at + 5m ? planned_at : retry_at"}, map[string]any{"expr": "k > 1 ?\n\t\"a\" == reason ? now : retry_at : planned_at"}})},
		{"on_exhausted", rapid.SampledFrom([]string{"give_up", "next_planned"}).AsAny()},
		{"give_up_after", someLength(0).AsAny()},
		{rapid.SampledFrom([]string{"retry_on", "never_retry"}).Draw(t, "classes"), rapid.SliceOfN(someClass().AsAny(), 0, 6).AsAny()},
		{"delays_by_error", rapid.MapOfN(someClass(), rapid.OneOf(someDelay(), rapid.Just[any]("never")), 0, 5).AsAny()},
		{"retry_window", rapid.SampledFrom([]string{"FREQ=DAILY;BYHOUR=9,10", " rrule:freq=weekly; byday=mo,tu ", "FREQ=DAILY"}).AsAny()},
		{"misfire", rapid.OneOf(rapid.SampledFrom([]any{"run_once", "skip"}), rapid.Map(someLength(0), func(text string) any { return "run_if_younger_than " + text }))},
		{"spread", someLength(0).AsAny()},
		{"notify", rapid.SampledFrom([]any{[]any{}, []any{"disabled"}, []any{"recovered"}, []any{"recovered", "disabled"}, []any{"stale", "disabled", "fresh"}, []any{"suspect", "fresh"}, []any{"disabled", "recovered", "stale", "fresh", "suspect"}})},
		{"email", rapid.SampledFrom([]any{"none", "o'x-1+a@mail.example.com", map[string]any{"payload": "Owner_mail-2"}, map[string]any{"label": "owner.mail-2"}})},
		{"failing_from", rapid.SampledFrom([]any{"none", 1, 3, 21, 1000})},
		{"disabled_reason", someReason().AsAny()}, {"limits", rapid.Custom(someLimits).AsAny()}, {"circuit", rapid.Custom(someCircuit).AsAny()},
		{"retry_after_scope", rapid.SampledFrom([]any{"auto", "model", "key"})},
		{"max_retry_after", rapid.SampledFrom([]any{"1s", "90m", "1d", "365d"})},
		{"closed", rapid.SliceOfN(someCalendar().AsAny(), 0, 8).AsAny()},
		{"guard", rapid.Custom(someGuards).AsAny()}, {"on_suspect", rapid.SampledFrom([]any{"tell", "fail", "hold"})},
		{"fresh_within", rapid.SampledFrom([]any{"none", "26h", "3650d", "1m30s"})},
	} {
		if rapid.Bool().Draw(t, "has "+field.name) {
			doc[field.name] = field.draw.Draw(t, field.name)
		}
	}
	if rapid.Bool().Draw(t, "has rrule") {
		doc["rrule"] = someRule().Draw(t, "rrule")
		if rapid.Bool().Draw(t, "has dtstart") {
			doc["dtstart"] = rapid.SampledFrom([]string{"2026-01-01T00:00:00", "2026-02-28", "20260101T063000"}).Draw(t, "dtstart")
		}
	}
	if fresh := doc["fresh_within"]; fresh != nil && fresh != "none" && rapid.Bool().Draw(t, "has warn_within") {
		doc["warn_within"] = rapid.SampledFrom([]any{"none", "1s", "1m29s999ms"}).Draw(t, "warn_within")
	}
	return doc
}

func someKey() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"{host(input_url)}", "{host(_)}", "{label.tenant}", "{label.a.b-c_d}", "{input_format}", "{for-each}", "{policy}"})
}

func someLimits(t *rapid.T) []any {
	limits := []any{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"{host(a)}", "{label.tenant}", "{kind}", "{policy}", "{B}"}), 0, 4, rapid.ID).Draw(t, "keys") {
		limit := map[string]any{"key": key}
		says := rapid.IntRange(1, 3).Draw(t, "says")
		if says&1 > 0 {
			limit["running"] = rapid.IntRange(1, 100_000).Draw(t, "running")
		}
		if says&2 > 0 {
			limit["rate"] = fmt.Sprintf("%d/%dms", rapid.IntRange(1, 1_000_000).Draw(t, "rate"), rapid.IntRange(1000, 86_400_000).Draw(t, "per"))
		}
		limits = append(limits, limit)
	}
	return limits
}

func someGuards(t *rapid.T) []any {
	guards := []any{}
	for range rapid.IntRange(0, 8).Draw(t, "guards") {
		rule := rapid.SampledFrom([]string{"min", "max", "drop", "rise"}).Draw(t, "rule")
		bounds := map[string]any{rule: rapid.OneOf(rapid.SampledFrom([]float64{0, 1, 100, 0.5}), rapid.Float64Range(0, 1e15)).Draw(t, "bound")}
		if rule == "drop" || rule == "rise" {
			percent := rapid.OneOf(rapid.SampledFrom([]string{"50", "100", "99", "0.001", "12.3"}), rapid.Map(rapid.IntRange(1, 10_000_000), func(n int) string { return fmt.Sprintf("%g", float64(n)/1000) })).Draw(t, "percent")
			if n, _ := strconv.ParseFloat(percent, 64); rule == "drop" && n > 99 {
				percent = "99"
			}
			bounds = map[string]any{rule: percent + "%"}
			if rapid.Bool().Draw(t, "has of") {
				bounds["of"] = rapid.IntRange(3, 100).Draw(t, "of")
			}
		}
		guards = append(guards, map[string]any{rapid.SampledFrom([]string{"rows", "bytes", "a", "the", "row_count_2", "twice", "percent"}).Draw(t, "metric"): bounds})
	}
	return guards
}

func someCircuit(t *rapid.T) map[string]any {
	of := rapid.IntRange(1, 100).Draw(t, "of")
	doc := map[string]any{"key": someKey().Draw(t, "key"), "open_after": fmt.Sprintf("%d of %d", rapid.IntRange(1, of).Draw(t, "failures"), of)}
	if rapid.Bool().Draw(t, "has on") {
		groups := rapid.SampledFrom([]string{"network", "timeout", "http_5xx", "429", "5xx"})
		doc["on"] = rapid.SliceOfN(rapid.OneOf(groups, someClass()).AsAny(), 1, 5).Draw(t, "on")
	}
	if rapid.Bool().Draw(t, "has probe") {
		doc["probe"] = fmt.Sprint(rapid.IntRange(1000, 86_400_000).Draw(t, "probe"), "ms")
	}
	return doc
}

func someCalendar() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{"holidays", "nightly-maintenance", "all", "no", "2026", "a."}), rapid.StringMatching(`[A-Za-z0-9][\w.-]{0,20}`))
}

// someLength draws durations from that many milliseconds to ten years, most of them of few units.
func someLength(from int64) *rapid.Generator[string] {
	const tenYears = 10 * 365 * 24 * 60 * 60 * 1000
	few := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprint(rapid.IntRange(1, 500).Draw(t, "number"), rapid.SampledFrom([]string{"ms", "s", "m", "h", "d", "w"}).Draw(t, "unit"))
	})
	return rapid.OneOf(few, rapid.Map(rapid.Int64Range(from, tenYears), func(n int64) string { return fmt.Sprint(n, "ms") }))
}

func someDelay() *rapid.Generator[any] {
	return rapid.OneOf(someLength(0).AsAny(), rapid.SampledFrom([]any{"next", "0s", "1m"}))
}

func someRetries() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.SliceOfN(someDelay(), 0, 45).AsAny(),
		rapid.SampledFrom([]any{"5s", "10 5s 10m", "0 5s", map[string]any{"expr": "k < 5 ? '10m' : false"}, map[string]any{"expr": "k > 3\n\t? \"1h\" : 60 // “why”"}}),
		rapid.Custom(someStrategy).AsAny(),
		rapid.Custom(someAgeTable).AsAny(),
	)
}

func someStrategy(t *rapid.T) map[string]any {
	strategy := rapid.SampledFrom([]string{"fixed", "linear", "exponential", "fibonacci"}).Draw(t, "strategy")
	doc := map[string]any{"strategy": strategy}
	if rapid.Bool().Draw(t, "has base") {
		doc["base"] = fmt.Sprint(rapid.IntRange(1, 100_000).Draw(t, "base"), "ms")
		if rapid.Bool().Draw(t, "has cap") {
			doc["cap"] = fmt.Sprint(rapid.IntRange(100_000, 1_000_000_000).Draw(t, "cap"), "ms")
		}
	}
	if rapid.Bool().Draw(t, "has count") {
		doc["count"] = rapid.IntRange(0, 1000).Draw(t, "count")
	}
	if strategy == "exponential" && rapid.Bool().Draw(t, "has factor") {
		doc["factor"] = rapid.Float64Range(1, 100).Draw(t, "factor")
	}
	return doc
}

func someAgeTable(t *rapid.T) map[string]any {
	var rows []any
	age := 0
	for range rapid.IntRange(1, 50).Draw(t, "rows") {
		age += rapid.IntRange(1, 1_000_000_000).Draw(t, "age")
		rows = append(rows, map[string]any{"up_to": fmt.Sprint(age, "ms"), "delay": someDelay().Draw(t, "delay")})
	}
	return map[string]any{"by_age": rows}
}

// someClass draws names of errors: usual ones, words of the grammar, and whatever else the model accepts.
func someClass() *rapid.Generator[string] {
	words := strings.Fields("NetworkError Too.Many:Things/x a an and error errors no nothing or the permanent failure in the_window Retry only at A An X.")
	odd := []string{"Too busy", "one, two and three", `say "no"`, `back\slash`, "“curly”", "`tick`", "**bold**", "x, or y", "the first failure", "1st", "\ufffe", "-"}
	return rapid.OneOf(rapid.SampledFrom(words), rapid.SampledFrom(odd), rapid.StringMatching(`[!-~]([ -~]{0,20}[!-~])?`))
}

// someReason draws texts with what has a meaning outside of quotes.
func someReason() *rapid.Generator[string] {
	odd := []string{"thumbnail creation failed", "It failed.", "pending...", `"`, `\`, `"quoted"`, "“curly”", "a. Panic. b", "- Panic", "1: 2:", "ünïcödé 🚀", "and give up"}
	return rapid.OneOf(rapid.SampledFrom(odd), rapid.StringMatching(`[!-~]([ -~]{0,200}[!-~])?`))
}

// someRule draws schedules with words of their own, without any, and with several lines, in odd spellings.
func someRule() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"every 2 hours", "twice per day at 6 AM and 4 PM", "0 6,16 * * *", "*/15 * 1 * 1", "@every 90m", "on the last Friday of the month at 18:00",
		"every day at 6:00 and 16:30", "FREQ=HOURLY;INTERVAL=2", "FREQ=DAILY", "rrule:freq=daily; byhour=6", "RRULE:FREQ=WEEKLY;BYDAY=MO\r\n\nEXDATE:20260105T000000",
		"FREQ=DAILY;COUNT=3\nRDATE:20260101T090000\n", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1", " FREQ=DAILY;BYHOUR=9 ",
	})
}

func TestThePolicyOfEveryBoundIsPrintedAndReadBack(t *testing.T) {
	var delays, classes []any
	byError := make(map[string]any)
	for i := range 1000 {
		delays = append(delays, "next")
		if i < 200 {
			class := fmt.Sprintf("%03d", i) + strings.Repeat("\U000e0100", 24)
			classes = append(classes, class)
			byError[class] = "next"
		}
	}
	checkPrint(t, canonical(t, map[string]any{
		"retries": delays, "never_retry": classes, "delays_by_error": byError, "disabled_reason": strings.Repeat(`"`, 500),
		"rrule": "FREQ=DAILY" + strings.Repeat("\nEXDATE:20260105T000000", 63),
	}))
}

func TestPrintSaysThePolicyWhole(t *testing.T) {
	for policy, want := range map[string]string{
		`{}`: `- Allow 10 minutes to complete
- On the first failure, retry immediately
- On the second failure, retry after 1 minute
- On the third failure, retry after 5 minutes
- Skip retries that overlap with a scheduled refresh
- After the final unsuccessful retry, wait until the next scheduled refresh, or give up if there is none
- Allow any time in the queue. Take no worker for lost. Do not spread the refreshes. Run a missed refresh once. Retry at any time. Retry on every error. ` +
			`Use the same delays after every error. Never give up for lack of a success. Give the usual reason. ` +
			"Notify the owner of everything. Send no e-mail. Notify the owner of no failure. Set no limits. Let a retry_after close keys only after http_429. Let a server ask to wait for at most 1 day. Open no circuit. Stay closed on no calendar. Promise no freshness. Doubt no refresh. Tell of a doubted refresh\n",
		`{"limits":[{"key":"{host(input_url)}","running":4,"rate":"60/1m"},{"key":"{label.tenant}","running":50},{"key":"{policy}","rate":"10/s"}],"retry_after_scope":"key",
			"circuit":{"key":"{host(input_url)}","open_after":"5 of 10","on":["network","5xx",429,"Too busy"]},"closed":["nightly-maintenance","holidays"],
			"fresh_within":"26h","warn_within":"24h"}`: `- Allow 10 minutes to complete
- On the first failure, retry immediately
- On the second failure, retry after 1 minute
- On the third failure, retry after 5 minutes
- Skip retries that overlap with a scheduled refresh
- After the final unsuccessful retry, wait until the next scheduled refresh, or give up if there is none
- Run at most 4 at a time and start at most 60 in 1 minute for each {host(input_url)}
- Run at most 50 at a time for each {label.tenant}
- Start at most 10 in 1 second for each {policy}
- Let a retry_after close keys
- Open the circuit of each {host(input_url)} after 5 failures of 10 attempts
- Count only "Too busy", http_429, http_5xx and network for the circuit
- Probe an open circuit after 5 minutes
- Stay closed on holidays and nightly-maintenance
- Keep the model fresh within 1 day 2 hours
- Warn after 1 day without a success
- Allow any time in the queue. Take no worker for lost. Do not spread the refreshes. Run a missed refresh once. Retry at any time. Retry on every error. ` +
			`Use the same delays after every error. Never give up for lack of a success. Give the usual reason. Notify the owner of everything. Send no e-mail. Notify the owner of no failure. Let a server ask to wait for at most 1 day. Doubt no refresh. Tell of a doubted refresh
`,
	} {
		diff := cmp.Diff(want, printed(t, canonical(t, decoded(t, policy))))
		failIf(t, diff != "", "%s: -want +got\n%s", policy, diff)
	}
}
