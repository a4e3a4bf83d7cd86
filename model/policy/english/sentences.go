package english

import "github.com/refreshd/refreshd/model/policy"

// headings say nothing of their own.
var headings = []form{
	{"retry", `policy`, "Retry policy:", sayNothing},
	{"use", `the defaults?`, "Use the defaults", sayNothing},
}

// settings are the sentences that set one field each.
var settings = []form{
	{"this|the", `policy is (?:called|named) <value>`, `This policy is called "nightly"`, setValue("name")},
	{"refresh", `(?:it |the model )?also by the rule (.+)`, "Refresh also by the rule EXDATE:20261224T060000", (*draft).alsoByRule},
	{"refresh", `(.+)`, "Refresh the model every 2 hours", (*draft).refresh},
	{"send|make", `an? request to (.+)`, "Send a request to the thumbnailer service", (*draft).request},
	{"use", `the time ?zone <value>`, "Use the time zone Europe/Berlin", setValue("timezone")},
	{"start|begin|count", `the schedule (?:at|on|from) <value>`, "Start the schedule at 2026-01-01T00:00:00", setValue("dtstart")},

	{"allow", `<duration> (?:to wait )?in the queue`, "Allow 10 minutes in the queue", setDuration("queue_timeout")},
	{"allow", `<duration>(?: to (?:complete|finish|respond)| for (?:a|the|each) (?:response|attempt|refresh))?`, "Allow 1 hour to complete",
		setDuration("timeout")},
	{"allow", `(?:any|unlimited) time(?: to (?:complete|finish|respond)| for (?:a|the|each) (?:response|attempt|refresh))?`,
		"Allow any time to complete", set("timeout", "none")},
	{"allow", `(?:any|unlimited) time (?:to wait )?in the queue`, "Allow any time in the queue", set("queue_timeout", "none")},

	{"give", `up after <duration> (?:of unsuccessful (?:refresh )?(?:attempts|retries)|without (?:a )?success)`,
		"Give up after one week of unsuccessful attempts", (*draft).giveUpAfter},
	{"never|do not", `give up for (?:lack|want) of a success`, "Never give up for lack of a success", set("give_up_after", "none")},
	{"give", `up after the (?:final|last) (?:unsuccessful |failed )?(?:retry|attempt)`, "Give up after the final unsuccessful retry",
		setExhausted(giveUp)},
	{"after", `the (?:final|last) (?:unsuccessful |failed )?(?:retry|attempt),? (?:reset attempt_no and )?wait <planned><else>`,
		"After the final unsuccessful retry, wait until the next scheduled refresh, or give up if there is none", setExhausted(nextPlanned)},
	{"give|show", `the reason <text>`, `Give the reason "thumbnail creation failed"`, setValue("disabled_reason")},
	{"give|show", `the usual reason`, "Give the usual reason", set("disabled_reason", "")},

	{"run", `(?:a )?missed refresh(?:es)? once`, "Run a missed refresh once", set("misfire", "run_once")},
	{"run", `(?:a )?missed refresh(?:es)?(?: once)? if (?:it is|they are) younger than <duration>`,
		"Run a missed refresh once if it is younger than 1 hour", (*draft).misfireYounger},
	{"skip", `(?:a )?missed refresh(?:es)?`, "Skip missed refreshes", set("misfire", "skip")},
	{"spread", `(?:the )?refreshes over <duration>`, "Spread the refreshes over 10 minutes", setDuration("spread")},
	{"do not|never", `spread (?:the )?refreshes`, "Do not spread the refreshes", set("spread", "none")},

	{"run", `at most <number> at (?:a|the same) time and start at most <number> in <duration> for each <key>`,
		"Run at most 4 at a time and start at most 60 in 1 minute for each {host(input_url)}", (*draft).limit},
	{"run", `at most <number> at (?:a|the same) time for each <key>`, "Run at most 4 at a time for each {host(input_url)}", (*draft).limitRunning},
	{"start", `at most <number> in <duration> for each <key>`, "Start at most 60 in 1 minute for each {host(input_url)}", (*draft).limitRate},
	{"set|use", `no limits?`, "Set no limits", set("limits", []any{})},
	{"open", `the circuit of (?:each )?<key> after <number> failures? of <number>(?: attempts?)?`,
		"Open the circuit of each {host(input_url)} after 5 failures of 10 attempts", (*draft).circuit},
	{"count", `only <names>(?: errors?)? for the circuit`, "Count only network, http_5xx and timeout for the circuit", (*draft).circuitOn},
	{"probe", `(?:the|an) open circuit after <duration>`, "Probe an open circuit after 5 minutes", (*draft).circuitProbe},
	{"open|use", `no circuit`, "Open no circuit", set("circuit", "none")},
	{"let", `a retry_after close keys`, "Let a retry_after close keys", set("retry_after_scope", string(policy.ScopeKey))},
	{"let", `a retry_after close no keys`, "Let a retry_after close no keys", set("retry_after_scope", string(policy.ScopeModel))},
	{"let", `a retry_after close keys only (?:after|on) http_429`, "Let a retry_after close keys only after http_429", set("retry_after_scope", "auto")},
	{"stay", `closed on no calendar`, "Stay closed on no calendar", set("closed", []any{})},
	{"stay", `closed on <names>`, "Stay closed on holidays and nightly-maintenance", setNames("closed")},
	{"keep", `<the model> fresh within <duration>`, "Keep the model fresh within 26 hours", setDuration("fresh_within")},
	{"promise", `no freshness`, "Promise no freshness", set("fresh_within", "none")},
	{"warn", `after <duration> without (?:a )?success`, "Warn after 24 hours without a success", setDuration("warn_within")},

	{"notify|email|tell", `nobody`, "Notify nobody", set("notify", []any{})},
	{"notify|email|e-mail|tell", `<reader> of everything`, "Notify the owner of everything", (*draft).notifyAll},
	{"send", `no e-?mail`, "Send no e-mail", set("email", "none")},
	{"email|e-mail", `<reader> at <mailbox>`, "Email the customer at owner_email of the payload", (*draft).emailTo},
	{"notify|email|e-mail|tell", `<reader> of no failure`, "Notify the owner of no failure", set("failing_from", "none")},
	{"notify|email|e-mail|tell", `<reader>(?: at <mailbox>)? of the <ordinal> failure(?: in a (?:row|cycle))?`,
		"Notify the owner of the third failure in a cycle", (*draft).notifyFailing},
	{"notify|email|e-mail|tell", `<reader>(?: at <mailbox>)? (?:when|if|that) (.*\b(?:disabled|recovers|recovered|stale|fresh again))`,
		"Notify the owner when refresh is disabled or has recovered", (*draft).notifyOwner},
}

// retrying are the sentences about when retries happen. The list "On the first failure, ..." is in actions.go.
var retrying = []form{
	{"on|after|at", `the <ordinal> failure[,:]? (.+)`, "On the second failure, retry after 1 minute", (*draft).onFailure},
	{"on|after|at", `the <ordinal> failure`, "On the seventh failure:", (*draft).atFailure},
	{"do not|never", `retry`, "Do not retry", set("retries", []any{})},
	{"retry", `(?:(?:up to |at most )?<number> times? )?with (fixed|linear|exponential|fibonacci) delays(?: from <duration>)?` +
		`(?:,? (?:by the )?factor <number>)?(?:,? at most <duration>)?`,
		"Retry up to 5 times with exponential delays from 1 minute, factor 2, at most 1 hour", (*draft).strategy},
	{"retry", `by the expression <text>`, `Retry by the expression "k < 5 ? '10m' : false"`, (*draft).expression},
	{"retry", `by the pattern <text>`, `Retry by the pattern "10 5s 10m"`, setValue("retries")},
	{"up", `to an age of <duration>,? (.+)`, "Up to an age of 1 day, retry after 5 minutes", (*draft).upToAge},
	{"vary", `(?:the|each|every|all) delays? by (?:up to )?<number> ?(?:%|percent)`, "Vary the delays by 20 percent", (*draft).vary},

	{"skip|ignore", `retries that overlap with (?:a|the|the next) (?:scheduled refresh|planned refresh|original timing)`,
		"Skip retries that overlap with a scheduled refresh", set("alignment", "align_planned")},
	{"retry", `until success,? whatever is (?:scheduled|planned)`, "Retry until success, whatever is scheduled", set("alignment", "until_success")},
	{"retry", `only at (?:scheduled|planned) refreshes`, "Retry only at scheduled refreshes", set("alignment", "planned_only")},
	{"retry", `or refresh as (?:scheduled|planned),? whichever comes first`, "Retry or refresh as scheduled, whichever comes first",
		set("alignment", "whichever_first")},
	{"begin|start", `a new cycle of retries at each (?:scheduled|planned) refresh`, "Begin a new cycle of retries at each scheduled refresh",
		set("alignment", "between_planned")},
	{"align|join", `retries (?:with the schedule )?by the expression <text>`,
		`Align retries by the expression "retry_at + timeout > planned_at + 5m ? planned_at : retry_at"`, (*draft).aligner},
	{"retry|start", `(?:retries )?only (?:with)?in the window (.+)`, "Retry only within the window FREQ=DAILY;BYHOUR=9,10,11", (*draft).window},
	{"retry|start", `(?:retries )?at any time`, "Retry at any time", set("retry_window", "none")},
}

// errorClasses are the sentences about kinds of errors. They come last: "On the seventh failure" could be the name of an error.
var errorClasses = []form{
	{"retry", `only on (?:no errors?|nothing)`, "Retry only on no error", set("retry_on", []any{})},
	{"retry", `only on <names>(?: errors?)?`, "Retry only on NetworkError and TimeoutError", setNames("retry_on")},
	{"retry", `on (?:any|every|each) (?:kind of )?errors?`, "Retry on every error", set("never_retry", []any{})},
	{"use", `the same delays after (?:any|every|each) (?:kind of )?error`, "Use the same delays after every error", set("delays_by_error", map[string]any{})},
	{"never|do not", `retry on (?:no errors?|nothing)`, "Never retry on no error", set("never_retry", []any{})},
	{"never|do not", `retry on <names>(?: errors?)?`, "Never retry on permanent errors", setNames("never_retry")},
	{"on|after", `<name>(?: errors?,?|,) (.+)`, "On RateLimited errors, retry after 1 hour", (*draft).onError},
	{"on|after", `an? <name>(?: errors?,?|,) (.+)`, "On a RateLimited error, retry after 1 hour", (*draft).onError},
}
