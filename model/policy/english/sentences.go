package english

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// sentences are what a policy may say beside actions. The first pattern that fits is taken.
var sentences = []form{
	{`retry policy / use the defaults?`, "Retry policy:", func(*draft, []string) {}},
	{`(?:this|the) policy is (?:called|named) <value> / (?:call|name) (?:this|the) policy <value> / the name of (?:this|the) policy is <value> / name: <value>`,
		`This policy is called "nightly"`, setValue("name")},
	{`refresh (?:it |the model )?also by the rule <rule>`, "Refresh also by the rule EXDATE:20261224T060000", func(d *draft, slots []string) {
		rule, found := d.doc["rrule"].(string)
		if !found {
			d.refuse(`a sentence such as "Refresh the model by the rule FREQ=DAILY" before it`, d.found())
		}
		d.doc["rrule"] = rule + "\n" + d.now.restore(slots[0])
	}},
	{`refresh <schedule>`, "Refresh the model every 2 hours", func(d *draft, slots []string) { d.schedule(d.cutSubject(slots[0])) }},
	{`(?:send|make) an? request to <schedule>`, "Send a request to the thumbnailer service", func(d *draft, slots []string) {
		switch rest := d.cutSubject(slots[0]); rest {
		case "":
		case slots[0]:
			d.fail(errNotKnown)
		default:
			d.schedule(rest)
		}
	}},
	{`use the time ?zone <value> / the time ?zone is <value> / time ?zone: <value> / (?:(?:all|the) )?times are in <value>`, "Use the time zone Europe/Berlin", setValue("timezone")},
	{`(?:start|begin|count) the schedule (?:at|on|from) <value>`, "Start the schedule at 2026-01-01T00:00:00", setValue("dtstart")},

	{`(?:allow|wait) <up to><duration> (?:to wait )?in the queue / <an attempt> (?:may|can) wait <up to><duration> in the queue /
		<an attempt> (?:may|can) wait in the queue for <up to><duration> / a worker must (?:start|take|pick up)(?: it| <an attempt>)? within <duration>`, "Allow 10 minutes in the queue",
		setDuration("queue_timeout")},
	{`allow (?:any|unlimited) time (?:to wait )?in the queue`, "Allow any time in the queue", set("queue_timeout", "none")},
	{`(?:take|consider) (?:a|the) worker(?: for| as)? lost (?:when|if|after) it is silent for <duration> /
		(?:take|consider) (?:a|the) worker(?: for| as)? lost after <duration> of silence / a worker that is silent for <duration> (?:is|counts as) lost`,
		"Take a worker for lost when it is silent for two minutes", setDuration("silent_after")},
	{`(?:take|consider) no worker(?: for| as)? lost / <not> (?:take|consider) a worker(?: for| as)? lost`, "Take no worker for lost", set("silent_after", "none")},
	{`(?:allow|give <an attempt>|let <an attempt> <run>|<it> (?:may|can) <run>|<it> has) <up to><duration><to complete> / <it> (?:<may>|has to) (?:complete|finish|respond|end|be done|be finished) within <duration> /
		(?:<it> times?|time) out after <duration> / (?:(?:<it> <may>|do) not|no (?:attempt|refresh|run) <may>)(?: let <it>)? <run> (?:more|longer) than <duration><to complete> /
		<it> <may> <run> (?:up to|at most|a maximum of|no (?:more|longer) than) <duration> / (?:cancel|abort|kill|stop|end|terminate|fail) <each one> (?:after|that <runs>) <duration> /
		(?:(?:if|when) <it> <runs>|<it> that <runs>) <duration>,?(?: it)? (?:has failed|fails|is a failure|counts as (?:failed|a failure)|is (?:aborted|cancelled|canceled|killed|stopped)|(?:cancel|abort|kill|stop|end|terminate|fail) it) /
		(?:consider|treat) <it> (?:as )?failed after <duration> / limit <an attempt> to <duration> / the <limit>(?: of <an attempt>)? is <duration> / <limit><,> <duration> /
		(?:set (?:the|a)|use a) <limit> (?:to|of) <duration> / wait <up to><duration> for (?:a|an|the|each) (?:response|answer)`,
		"Allow 1 hour to complete", setDuration("timeout")},
	{`allow (?:any|unlimited) time<to complete> / allow as much time as (?:it|<an attempt>) needs / there is no timeout / no timeout / <not> time out`, "Allow any time to complete", set("timeout", "none")},

	{`give up after <count> (retries|(?:failed |unsuccessful )?attempts|failures) / after <count> (retries|(?:failed |unsuccessful )attempts|failures)<,> <give up>`, "Give up after 5 retries", func(d *draft, slots []string) {
		n := countOf(slots[0])
		if !strings.EqualFold(slots[1], "retries") {
			n-- // the first attempt is no retry
		}
		d.part("count", float64(n))
		d.exhausted(giveUp)
	}},
	{`(?:stop|give up) after <count> retries and wait <planned>`, "Stop after 5 retries and wait until the next scheduled refresh", func(d *draft, slots []string) {
		d.part("count", float64(countOf(slots[0])))
		d.exhausted(nextPlanned)
	}},
	{`(?:give up|stop trying) after <duration>(?:<failing>)?(?: and <tell clause>)? / (?:disable|stop) <the model> after <duration><failing>(?: and <tell clause>)? /
		(?:give up|(?:disable|stop) <the model>) (?:if|when) <failing for> <duration>(?: and <tell clause>)? / (?:if|when) <failing for> <duration><,> <give up>(?: and <tell clause>)? /
		after <duration><failing><,> <give up>(?: and <tell clause>)?`,
		"Give up after one week of unsuccessful attempts", func(d *draft, slots []string) {
			d.inWindow = true
			d.openBlock()
			setDuration("give_up_after")(d, slots)
			if slots[1] != "" {
				d.inWindow = true
				d.act("give up and " + slots[1])
				d.closeBlock()
			}
		}},
	{`<not> give up for (?:lack|want) of a success`, "Never give up for lack of a success", set("give_up_after", "none")},
	{`give up after <last retry> / give up (?:if|when|after|once) <retries fail>`, "Give up after the final unsuccessful retry", func(d *draft, _ []string) { d.exhausted(giveUp) }},
	{`after (?:<last retry>|the retries)<,> <action> / (?:if|when|after|once) <retries fail><,> <action> / on any (?:further|other|later) failure<,> <action> /
		(?:then,? )?after another failure<,> <action>`,
		"After the final unsuccessful retry, wait until the next scheduled refresh, or give up if there is none", func(d *draft, slots []string) {
			ended := d.ended // the sentence says itself that it is about the last retry, so that it may stand before the first
			d.afterThat(slots)
			d.ended = ended
		}},
	{`(?:then|finally|afterwards|after that),? <action>`, "Then give up", (*draft).afterThat},
	{`(?:give|show|use) the reason <text> / show the message <text>`, `Give the reason "thumbnail creation failed"`, setValue("disabled_reason")},
	{`(?:give|show) the usual reason`, "Give the usual reason", set("disabled_reason", "")},

	{`run <missed> once / <missed> (?:(?:are|is) )?(?:run|made up for|caught up on) once / catch up on <missed> once / if a refresh was missed,? run it once`, "Run a missed refresh once", set("misfire", "run_once")},
	{`run <missed>(?: once)?(?: only)? if (?:it is|they are) (?:younger|less) than <duration>(?: old)? /
		(?:skip|ignore) <missed>(?: that (?:is|are)| by)? (?:older|more) than <duration>(?: old)?`,
		"Run a missed refresh once if it is younger than 1 hour",
		func(d *draft, slots []string) {
			d.set("misfire", "run_if_younger_than "+d.duration("misfire", slots[0]))
		}},
	{`(?:skip|ignore) <missed> / <missed> (?:are|is) (?:skipped|ignored) / <not> (?:run|catch up on|make up for) <missed> / if a refresh was missed,? skip it`, "Skip missed refreshes", set("misfire", "skip")},
	{`spread (?:the )?(?:refreshes|load|starts) (?:over|across) <duration>`, "Spread the refreshes over 10 minutes", setDuration("spread")},
	{`<not> spread (?:the )?refreshes`, "Do not spread the refreshes", set("spread", "none")},

	{`<run them><at most> <count><at a time> and start <at most> <count> (?:in|per) <period> <for each> <key>`,
		"Run at most 4 at a time and start at most 60 in 1 minute for each {host(input_url)}",
		func(d *draft, slots []string) { d.addLimit(slots[3], slots[0], slots[1], slots[2]) }},
	{`<run them><at most> <count><at a time> <for each> <key>`, "Run at most 4 at a time for each {host(input_url)}",
		func(d *draft, slots []string) { d.addLimit(slots[1], slots[0], "", "") }},
	{`(?:start )?<at most> <count>(?: starts| refreshes| attempts)? (?:in|per) <period> <for each> <key>`, "Start at most 60 in 1 minute for each {host(input_url)}",
		func(d *draft, slots []string) { d.addLimit(slots[2], "", slots[0], slots[1]) }},
	{`(?:(?:set|use) )?no limits?`, "Set no limits", set("limits", []any{})},
	{`open the circuit (?:of|for) (?:each )?<key> after <count> failures?(?: out)? of <count>(?: attempts)? /
		open the circuit (?:of|for) (?:each )?<key> (?:when|if) <count>(?: out)? of <count> attempts fail`,
		"Open the circuit of each {host(input_url)} after 5 failures of 10 attempts", func(d *draft, slots []string) {
			d.setCircuit("circuit.key", map[string]any{"key": slots[0], "open_after": number(countOf(slots[1])) + " of " + number(countOf(slots[2]))})
			d.lines["circuit.open_after"] = d.lines["circuit.key"]
		}},
	{`count only <errors> for the circuit`, "Count only network, http_5xx and timeout for the circuit",
		func(d *draft, slots []string) {
			d.setCircuit("circuit.on", map[string]any{"on": d.errorTypes(slots[0], true)})
		}},
	{`probe (?:the|an) open circuit after <duration>`, "Probe an open circuit after 5 minutes",
		func(d *draft, slots []string) {
			d.setCircuit("circuit.probe", map[string]any{"probe": d.duration("circuit.probe", slots[0])})
		}},
	{`(?:(?:open|use) )?no circuit`, "Open no circuit", set("circuit", "none")},
	{`let a retry_after close keys`, "Let a retry_after close keys", set("retry_after_scope", string(policy.ScopeKey))},
	{`let a retry_after close no keys`, "Let a retry_after close no keys", set("retry_after_scope", string(policy.ScopeModel))},
	{`let a retry_after close keys only (?:after|on) http_429`, "Let a retry_after close keys only after http_429", set("retry_after_scope", "auto")},
	{`stay closed on no calendar`, "Stay closed on no calendar", set("closed", []any{})},
	{`stay closed on (the calendars? |)<names>`, "Stay closed on holidays and nightly-maintenance", (*draft).calendars},
	{`keep <the model> fresh within <duration> / <the model> <may> (?:never|not) be (?:older|more) than <duration>(?: old)? / <the model> <may> be (?:at most|no more than) <duration> old /
		(?:<the model> (?:is|goes|becomes|counts as)|consider <the model>) stale (?:after|when it is older than) <duration>(?: without (?:a )?success)? / <the model> older than <duration> (?:is|counts as) stale`, "Keep the model fresh within 26 hours", setDuration("fresh_within")},
	{`promise no freshness`, "Promise no freshness", set("fresh_within", "none")},
	{`warn after <duration> without (?:a )?success`, "Warn after 24 hours without a success", setDuration("warn_within")},

	{`doubt <a success> with(?:out(?: any)?| no) <metric>`, "Doubt a refresh without rows", addGuard("min", func(slots []string) (string, any) { return slots[0], "1" })},
	{`doubt <a success> with (?:fewer|less) than <number> <metric>`, "Doubt a refresh with fewer than 100 rows",
		addGuard("min", func(slots []string) (string, any) { return slots[1], slots[0] })},
	{`doubt <a success> with more than <number> <metric>`, "Doubt a refresh with more than 100 rows",
		addGuard("max", func(slots []string) (string, any) { return slots[1], slots[0] })},
	{`doubt <a success> with (?:less|fewer) than half (?:of )?the usual <metric><of the last>`, "Doubt a refresh with less than half of the usual rows",
		addGuard("drop", func(slots []string) (string, any) { return slots[0], "50%" })},
	{`doubt <a success> with (?:less|fewer) than <percent> of the usual <metric><of the last>`, "Doubt a refresh with less than 70 percent of the usual rows",
		addGuard("drop", func(slots []string) (string, any) { return slots[1], percentOff(slots[0]) })},
	{`doubt <a success> with more than (?:twice|double) the usual <metric><of the last>`, "Doubt a refresh with more than twice the usual rows",
		addGuard("rise", func(slots []string) (string, any) { return slots[0], "100%" })},
	{`doubt <a success> with (?:more than|over) <percent> (?:fewer|less) <metric> than usual<of the last>`, "Doubt a refresh with more than 30 percent fewer rows than usual",
		addGuard("drop", func(slots []string) (string, any) { return slots[1], slots[0] + "%" })},
	{`doubt <a success> with (?:more than|over) <percent> more <metric> than usual<of the last>`, "Doubt a refresh with more than 30 percent more rows than usual",
		addGuard("rise", func(slots []string) (string, any) { return slots[1], slots[0] + "%" })},
	{`(?:doubt no (?:refresh|success|result)|<not> doubt <a success>)`, "Doubt no refresh", set("guard", []any{})},
	{`(tell|fail|hold)(?: of)? (?:(?:a|each|every) )?doubted (?:refresh(?:es)?|success(?:es)?|results?)`, "Hold a doubted refresh",
		func(d *draft, slots []string) { d.set("on_suspect", strings.ToLower(slots[0])) }},

	{`<tell> (?:nobody|no one) / nobody is (?:notified|told) / <not> (?:notify|tell) (?:anybody|anyone|<reader>)`, "Notify nobody", set("notify", []any{})},
	{`<tell> <reader> of everything`, "Notify the owner of everything", func(d *draft, _ []string) {
		for _, notice := range policy.Notices {
			d.notify(notice)
		}
	}},
	{`send no e-?mail / <not> send (?:any )?e-?mails?`, "Send no e-mail", set("email", "none")},
	{`e-?mail <reader> at <mailbox> / send (?:an )?e-?mails? to <mailbox>`, "Email the customer at owner_email of the payload", (*draft).emailTo},
	{`<tell> <reader> of no failure`, "Notify the owner of no failure", set("failing_from", "none")},
	{`<tell> <reader>(?: at <mailbox>)? (?:of|after|on|about) the <ordinal> failure(?: in a (?:row|cycle))? / e-?mail <mailbox> after <count> (?:consecutive )?failures(?: in a (?:row|cycle))? /
		(?:on|after) the <ordinal> failure(?: in a (?:row|cycle))?<,> <tell> <reader> / after <count> (?:consecutive )?failures(?: in a (?:row|cycle))?<,> <tell> <reader> /
		<tell> <reader>(?: at <mailbox>)? after <count> (?:consecutive )?failures(?: in a (?:row|cycle))? /
		<tell> <reader>(?: at <mailbox>)? (?:when|if) <the model> fails <count> times in a row`, "Notify the owner of the third failure in a cycle", (*draft).notifyFailing},
	{`<when>, <tell> <reader>(?: at <mailbox>)? / <when>, e-?mail <mailbox>`, "When the model is disabled, notify the owner", func(d *draft, slots []string) {
		(*draft).notifyOwner(d, []string{slots[1], slots[0]})
	}},
	{`<tell> <reader>(?: at <mailbox>)? <events> / e-?mail <mailbox> <events> / send (?:an )?e-?mails? to <mailbox> <events>`,
		"Notify the owner when refresh is disabled or has recovered", (*draft).notifyOwner},

	{`(?:on|after|at|for) (?:the )?<ordinals> failures?<,> <action> / (?:on|after) failure <count><,> <action> / (?:if|when) the <ordinals>(?: (?:attempt|refresh|try))? fails<,> <action>`,
		"On the second failure, retry after 1 minute", (*draft).onFailure},
	{`(?:on|after|at) (?:the )?<ordinal> failure`, "On the seventh failure:", func(d *draft, slots []string) {
		k, known := words.Ordinal(slots[0])
		if !known {
			d.fail(errNotKnown)
		}
		d.block = block{heading: d.now.level}
		d.atFailure(k)
	}},
	{`<not> retry<,> give up / <on failure>give up`, "On failure, give up", func(d *draft, _ []string) {
		d.set("retries", []any{})
		d.exhausted(giveUp)
	}},
	{`<on failure>wait <planned>(?: instead)?`, "On failure, wait until the next scheduled refresh", func(d *draft, _ []string) {
		d.set("retries", []any{})
		d.exhausted(nextPlanned)
	}},
	{`(?:<on failure>)?<not> retry(?: at all| failed (?:attempts|refreshes)| (?:on|after) (?:a |any )?failure| on errors)? / no retries(?: at all)?`, "Do not retry", set("retries", []any{})},
	{`<on failure>(?:retry (?:after|in) <duration>|wait <duration>,? (?:and then|and|then) retry)(?:,? (?:up to|at most|no more than) <count> times)?`, "On failure, retry after 5 minutes",
		func(d *draft, slots []string) {
			d.part("strategy", "fixed")
			d.part("base", d.duration("retries.base", slots[0]+slots[1]))
			if d.each = slots[2] == ""; !d.each {
				d.part("count", float64(countOf(slots[2])))
			}
		}},
	{`retry by the expression <text>`, `Retry by the expression "k < 5 ? '10m' : false"`, setExpression("retries")},
	{`retry by the pattern <text>`, `Retry by the pattern "10 5s 10m"`, setValue("retries")},
	{`up to an age of <duration><,> <action>`, "Up to an age of 1 day, retry after 5 minutes", (*draft).upToAge},
	{`(?:(?:the )?(?:retry )?delays(?: are|:)|use the (?:retry )?delays) <delays>`, "Use the delays 1 minute, 5 minutes and 1 hour", func(d *draft, slots []string) {
		d.list = nil
		d.delays(slots)
		d.set("retries", d.list)
	}},
	{`wait <duration> between (?:retries|attempts)`, "Wait 5 minutes between retries", setPart("base")},
	{`(?:vary|randomi[sz]e) (?:the|each|every|all) (?:retry )?delays?(?: randomly)? by (?:up to )?<percent> / (?:add|use) (?:up to )?<percent>(?: of)? (?:random )?jitter(?: to (?:the|each|every|all) delays?)? / (?:add|use) (?:a )?(?:random )?jitter of (?:up to )?<percent>`,
		"Vary the delays by 20 percent", (*draft).vary},
	{`<not> vary the delays / (?:no|without) jitter`, "Do not vary the delays", set("jitter", 0.0)},

	{`(?:skip|ignore|drop) (?:retries|a retry) that (?:would )?overlaps? with <planned one> / retries must not overlap with <planned one> /
		<not> retry (?:when|if) (?:a|the) retry would overlap with <planned one>`, "Skip retries that overlap with a scheduled refresh", set("alignment", "align_planned")},
	{`(?:retry|keep retrying) until (?:success|it succeeds)<,> <whatever>`, "Retry until success, whatever is scheduled", set("alignment", "until_success")},
	{`retry only at (?:the next )?<scheduled> refresh(?:es)?`, "Retry only at scheduled refreshes", set("alignment", "planned_only")},
	{`retry or refresh as <scheduled>,? whichever comes first`, "Retry or refresh as scheduled, whichever comes first", set("alignment", "whichever_first")},
	{`(?:begin|start) (?:a new cycle of retries|over) at (?:each|every) <scheduled> refresh`, "Begin a new cycle of retries at each scheduled refresh",
		set("alignment", "between_planned")},
	{`(?:align|join) retries (?:with the schedule )?by the expression <text>`,
		`Align retries by the expression "retry_at + timeout > planned_at + 5m ? planned_at : retry_at"`, setExpression("alignment")},
	{`(?:retry|start retries) only (?:with)?in the window <rule> / let retries wait for the window <rule>`, "Let retries wait for the window FREQ=DAILY;BYHOUR=9,10,11",
		func(d *draft, slots []string) { d.set("retry_window", d.now.restore(slots[0])) }},
	{`(?:retry|start retries) at any time`, "Retry at any time", set("retry_window", "none")},
	{`(?:retry|start retries) only <window>`, "Retry only between 9 AM and 5 PM", setWindow(false)},
	{`<not> retry <window>`, "Never retry between 10 PM and 6 AM", setWindow(true)},

	{`retry only on (?:no errors?|nothing)`, "Retry only on no error", set("retry_on", []any{})},
	{`retry only (?:on |after |(?:if|when) the error is )?<errors> / retry <errors> only / only <errors> are retried / <not> retry on anything (?:but|except) <errors>`, "Retry only on NetworkError and TimeoutError", setErrors("retry_on")},
	{`retry on (?:any|every|each) (?:kind of )?error / retry (?:on )?all errors / <not> retry on (?:no errors?|nothing)`, "Retry on every error", set("never_retry", []any{})},
	{`use the same delays after (?:any|every|each) (?:kind of )?error`, "Use the same delays after every error", set("delays_by_error", map[string]any{})},
	{`<not> retry (?:if|when|after) it times out`, "Never retry when it times out", set("never_retry", []any{policy.ReasonTimeout})},
	{`<not> retry (?:on |after |(?:if|when) the (?:error is|(?:server|source|worker) (?:says|answers|returns|responds)(?: with)?) )?<errors> / <errors> are (?:never|not) retried / give up on <errors> / retry on (?:any error|every error|all errors) except <errors>`,
		"Never retry on permanent errors", setErrors("never_retry")},
	{`(?:on|after|for|in case of) <errors><,> <delay> / (?:if|when) the (?:error is|(?:server|source|worker) (?:says|answers|returns|responds)(?: with)?) <errors><,> <delay>`, "On RateLimited errors, retry after 1 hour", (*draft).onError},
	{`(?:<on failure>)?(?:retry|keep retrying) <strategy> / (?:<on failure>)?(?:use )?(?:an? )?<backoff>`,
		"Retry up to 5 times with exponential delays from 1 minute, factor 2, at most 1 hour", (*draft).strategy}, // it fits every retry
}

// form is a pattern of sentences and its meaning. No pattern accepts any word: each is known or stands in a slot that is read on.
type form struct {
	patterns string // one fits, between slashes; with slots such as <duration>
	example  string // what an error suggests
	apply    func(d *draft, slots []string)
}

var slotPatterns = strings.NewReplacer(
	// Read on by a grammar of their own
	"<schedule>", `(.+)`, // of package schedule
	"<rule>", `(.+)`, // RRULE lines
	"<action>", `(.+)`, // actions
	"<delay>", `((?:retry|wait|never|do not|give) .+)`, // actions
	"<window>", `((?:(?:between|from|before|after|at|in|during) .+|(?:on )?`+someDay+`\b.*))`, // of package schedule
	"<strategy>", `(.+)`, // traits
	"<backoff>", `((?:fixed|linear|exponential|fibonacci) .+)`, // traits
	"<events>", `((?:when|if|that|notifying \w+ that|saying that) .+)`, // events

	"<when>", `((?:when|if) [^,]+)`,
	"<duration>", `(`+words.DurationPattern+`)`,
	"<length>", `(\d+[- ](?:second|minute|hour|day)s?)`,
	"<tries>", someTries,
	"<pause>", `(?:delay|pause|wait|gap|interval|break)`,
	"<between>", `(?: (?:in )?between`+someTries+`)?`,
	"<delays>", `(`+someSpan+`(?:(?:,? and then |,? then |, and |, | and (?:again )?)(?:(?:after|in) )?`+someSpan+`)*)`,
	"<period>", `(`+words.DurationPattern+`|second|minute|hour|day)`,
	"<ordinals>", `(`+someOrdinal+`(?:(?:, and |, | and )`+someOrdinal+`)*|first (?:`+someCount+`))`,
	"<ordinal>", `(`+someOrdinal+`)`,
	"<count>", `(`+someCount+`)`,
	"<number>", `(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)`,
	"<percent>", `(\d+(?:\.\d+)?) ?(?:%|percent)`,
	"<text>", `("\d+")`,
	"<value>", `("\d+"|[^\s"]+)`,
	"<names>", `(`+someName+`(?:(?:, and |, or |, | and | or )`+someName+`)*)`,
	"<errors>", `(`+someError+`(?:(?:, and |, or |, | and | or )(?:(?:on|after) )?`+someError+`)*)`,
	"<key>", `(\{[^{}"]*\})`,
	"<metric>", `("\d+"|[a-z][a-z0-9_]*)`,
	"<of the last>", `(?: of the last (\d{1,3})(?: (?:good )?(?:results|refreshes|successes))?)?`,
	"<mailbox>", `(`+someMailbox+`)`,

	// Not captured
	"<,>", `[,:]?`,
	"<up to>", `(?:(?:up to|at most|(?:no|not) more than|(?:for )?a maximum of) )?`,
	"<at most>", `(?:up to|at most|no more than|only)`,
	"<run them>", `(?:(?:run|allow) )?`,
	"<run>", `(?:run|take|last)(?: for)?`,
	"<each one>", `(?:an?|each|every|any) (?:single )?(?:attempt|refresh|run|job)`,
	"<limit>", `(?:timeout|time limit|(?:maximum|max\.?) (?:(?:run|running) ?time|duration|time))`,
	"<it>", `(?:it|(?:(?:an?|each|every|the|any) (?:single )?(?:attempt|refresh|run|job)|(?:all )?(?:attempts|refreshes|runs)))`,
	"<at a time>", `(?: attempts?| refresh(?:es)?)? at (?:a time|the same time|once)`,
	"<may>", `(?:may|can|should|must)`,
	"<runs>", `(?:takes?|runs?|lasts?)(?: for)? (?:more|longer) than`,
	"<on failure>", `(?:(?:on|after|upon|in case of) (?:an? |each |every |any )?failures?[,:]? |(?:if|when|whenever) (?:it|`+words.NounPattern+`|(?:an?|the|any) (?:attempt|refresh)) fails[,:]? )`,
	"<give up>", `(?:give up|(?:disable|stop) `+words.NounPattern+`|disable (?:auto-?)?refresh)`,
	"<tell clause>", `((?:notify|e-?mail|tell|send) .+)`,
	"<failing for>", `(?:(?:it|(?:a|the) model|`+words.NounPattern+`) (?:has not succeeded|does not succeed|keeps failing|has been failing|is failing|fails|has failed|fails continuously)|there (?:is|has been) no success) (?:for|within)(?: more than)?`,
	"<for each>", `(?:for each|for every|per)`,
	"<not>", `(?:do not|never)`,
	"<tell>", `(?:notify|e-?mail|tell)`,
	"<an attempt>", `(?:(?:an?|each|every|the|any) (?:single )?(?:attempt|refresh|run|job)|(?:all )?(?:attempts|refreshes|runs))`,
	"<a success>", `(?:(?:an?|each|every) )?(?:refresh|success|result)`,
	"<last retry>", `the (?:final|last) (?:unsuccessful |failed )?(?:retry|attempt)`,
	"<to complete>", `(?: to (?:complete|finish|respond)| for (?:a|the|each) (?:response|attempt|refresh))?`,
	"<failing>", `(?: of (?:(?:unsuccessful |failed )?(?:refresh )?(?:attempts|retries)|failures|failing)| without (?:a |any )?success(?:ful refresh)?)`,
	"<retries fail>", `(?:(?:all|the|all the) (?:retries|attempts) (?:(?:have )?(?:fail|failed|run out)|are exhausted|are used up)|every retry (?:fails|has failed)|the (?:final|last) retry (?:fails|has failed)|`+
		`no retr(?:y|ies) (?:is|are) left|no retries remain|none of the retries (?:succeeds|succeed|works|work))`,
	"<missed>", `(?:(?:a )?missed refresh|missed refreshes|refreshes (?:that were )?missed)`,
	"<scheduled>", someScheduled,
	"<planned>", `(?:until|for) (?:the )?next `+someScheduled+` (?:refresh|run|time|one)`,
	"<planned one>", `(?:(?:a|the|the next) (?:`+someScheduled+` refresh|original timing)|(?:the )?`+someScheduled+` refreshes)`,
	"<whatever>", `(?:whatever is `+someScheduled+`|regardless of the schedule|even if (?:a|another) refresh is `+someScheduled+`)`,
	"<else>", `(?:,? (?:or|and) give up (?:if|when) (?:there is none|none is `+someScheduled+`))?`,
	"<the model>", `(?:auto-?refresh|refresh(?:ing)?|`+words.NounPattern+`)`,
	"<reader>", `(?:(?:the|its) )?(?:customer|owner|user|client)`,
)

var (
	someOrdinal = `(?:\d{1,4}(?:st|nd|rd|th)|(?:` + words.OrdinalPattern + `))`
	someSpan    = `(?:(?:\d+(?:\.\d+)?|half an?|` + words.NumberPattern + `) ?(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?: and a half)?|\d+)`
	someCount   = `\d{1,7}|` + strings.TrimSuffix(words.NumberPattern, "|an|a")
)

const (
	// someMailbox is who gets e-mail: a field of the payload, a label or an address.
	someMailbox   = `[a-z_][\w-]* of (?:the|its) payload|(?:the|its) label [a-z][\w.-]*|\{(?:payload|label): ?[\w.-]+\}|"\d+"|[^\s"{}]+@[^\s"]+`
	someTries     = `(?: (?:the |each |every |all )?(?:attempts?|retries|retry|tries|try|them|each))?`
	someName      = `(?:"\d+"|[a-z_][\w.:/-]*)`
	someError     = `(?:(?:an? )?(?:"\d+"|(?:http )?[1-5]\d\ds?|http_[1-5]xx|[a-z_][\w.:/-]*)(?: errors?)?)`
	someScheduled = `(?:scheduled|planned)`
	someDay       = `(?:weekdays?|workdays|working days|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|wed|thu|fri|sat|sun)`
)

type compiled struct {
	*form
	*regexp.Regexp
}

func compile(forms []form, end string) (all []compiled) {
	for i := range forms {
		for _, pattern := range betweenPatterns.Split(forms[i].patterns, -1) {
			all = append(all, compiled{&forms[i], regexp.MustCompile(`(?i)^(?:` + slotPatterns.Replace(pattern) + `)` + end)})
		}
	}
	return all
}

var betweenPatterns = regexp.MustCompile(`\s+/\s+`)

func match(grammar []compiled, text string) (f *form, slots []string) {
	for _, c := range grammar {
		if found := c.FindStringSubmatch(text); found != nil {
			return c.form, found[1:]
		}
	}
	return nil, nil
}

// apply applies the forms that fit until one knows what the sentence says.
func (d *draft) apply(grammar []compiled, text string) bool {
	for _, c := range grammar {
		if found := c.FindStringSubmatch(text); found != nil {
			before := *d
			before.doc, before.lines, before.parts, before.failures = maps.Clone(d.doc), maps.Clone(d.lines), maps.Clone(d.parts), maps.Clone(d.failures)
			if c.apply(d, found[1:]); d.known() {
				return true
			}
			*d = before
		}
	}
	return false
}

// The grammars are compiled when the first text is read: most runs of the program read none.
var (
	sentenceGrammar = sync.OnceValue(func() []compiled { return compile(sentences, "$") })
	actionGrammar   = sync.OnceValue(func() []compiled { return compile(actions, "$") })
	// The last slot of a trait is what follows it.
	traitGrammar = sync.OnceValue(func() []compiled { return compile(traits, `(?:|[,:]?(?: and then| and| but| then)? (.+))$`) })
)

var knownSentences = sync.OnceValue(func() *words.Phrasebook {
	var examples []string
	for _, f := range slices.Concat(sentences, actions) {
		examples = append(examples, f.example)
	}
	for _, ordinal := range words.Firsts {
		examples = append(examples, "On the "+ordinal+" failure, retry immediately", "On the "+ordinal+" failure, retry after 1 minute")
	}
	return words.NewPhrasebook(examples)
})
