package english

import (
	"strings"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// asWritten are the sentences with a part that keeps its own words.
var asWritten = []form{
	{`retry policy / use the defaults?`, "Retry policy:", func(*draft, []string) {}},
	{`(?:this|the) policy is (?:called|named) <value> / (?:call|name) (?:this|the) policy <value> / the name of (?:this|the) policy is <value> / name: <value>`,
		`This policy is called "nightly"`, setValue("name")},
	{`refresh (?:it |the model )?also by the rule <rest>`, "Refresh also by the rule EXDATE:20261224T060000", (*draft).alsoByRule},
	{`refresh <rest>`, "Refresh the model every 2 hours", func(d *draft, slots []string) { d.schedule(d.cutSubject(slots[0])) }},
	{`(?:send|make) an? request to <rest>`, "Send a request to the thumbnailer service", (*draft).request},
	{`use the time ?zone <value> / the time ?zone is <value> / time ?zone: <value> / (?:(?:all|the) )?times are in <value>`, "Use the time zone Europe/Berlin", setValue("timezone")},
	{`(?:start|begin|count) the schedule (?:at|on|from) <value>`, "Start the schedule at 2026-01-01T00:00:00", setValue("dtstart")},
	{`(?:retry|start retries) only (?:with)?in the window <rest> / let retries wait for the window <rest>`, "Let retries wait for the window FREQ=DAILY;BYHOUR=9,10,11",
		func(d *draft, slots []string) { d.set("retry_window", d.now.restore(slots[0], asItIs)) }},
}

// headed are the ways to say the value of a field by its name: "The timeout is 1 hour", "Timeout: 1 hour".
func headed(names, value string) string {
	name := `(?:` + names + `)(?: (?:for|of) <it>| for each (?:attempt|refresh|run|job))?`
	return name + `(?::| of)? ` + value + ` / (?:the )?` + name + ` is ` + value + ` / set (?:the|an?) ` + name + ` to ` + value + ` / (?:use|with|add|promise|allow|set)(?: an?)? ` + name + ` of ` + value
}

// without are the ways to say that there is none of them.
func without(names string) string {
	return `(?:(?:use|set|there is|there are|with|add|open|promise|send) )?no (?:` + names + `)(?: (?:for|of) <it>)? / without (?:an? )?(?:` + names + `) / (?:the )?(?:` + names + `)(?: is|:) none`
}

const timeoutNames = `(?:attempt )?timeout|time limit|at most (?:(?:run|running) ?time|duration|time)`

// sentences are the other sentences of a policy beside actions, in plain words. The first pattern that fits is taken.
var sentences = []form{
	{`(?:allow|wait) <at most><duration> (?:to wait )?in the queue / <it> (?:may wait|waits) <at most><duration> (?:in the queue|for a worker) / <it> may (?:wait|stay|remain) in the queue (?:for )?<at most><duration> / (?:if|when) <it> waits in the queue (?:for )?more than <duration> => (?:offer <it> again|<it> is offered again) /
		never wait more than <duration> in the queue / <worker> must (?:start|take|pick up|begin|send started|announce (?:started|the start))(?: it| <it>)? within <duration>(?:, otherwise <it> is offered again)? / (?:<worker> (?:has|have|gets?)|give <worker>) <at most><duration> to (?:start|take|pick up|begin)(?: <it>)? / (?:if|when) <it> is never started (?:after|within|in) <duration> => (?:offer <it> again|<it> is offered again) /
		(?:if|when) (?:no worker (?:has )?|<worker> never )(?:starts?|started|takes?|taken|picks? up|picked up|begins?|begun)(?: <it>)? (?:after|within|in) <duration> => (?:offer <it> again|<it> is offered again) / ` + headed(`queue timeout|time in the queue|timeout in the queue`, `<at most><duration>`) + ` / allow (?:any|unlimited) time (?:to wait )?in the queue / ` + without(`queue timeout|limit for the queue`),
		"Allow 10 minutes in the queue", setDuration("queue_timeout")},
	{`(?:take|consider|treat|count|regard) <worker>(?: for| as)? lost <silent> / <worker> <silent> is lost / <worker> is lost <silent> / an? silent worker is lost after <duration> / <silent> => (?:it|<worker>) is lost /
		<silent> => (?:take|consider|treat|count|regard) (?:it|the worker)(?: for| as)? lost / (?:take|consider) no worker(?: for| as)? lost / never (?:take|consider) a worker(?: for| as)? lost`,
		"Take a worker for lost when it is silent for two minutes", setDuration("silent_after")},
	{`(?:allow|allow <it>|allow <it> to <run>(?: for)?|give <it>|let <it> <run>(?: for)?|<it> may <run>(?: for)?|<it> (?:has|gets|have|get|is allowed|are allowed|is given|are given)|limit (?:the time of )?<it> to|the limit (?:for|of) <it> is|grant <it>) (?:for )?<at most><duration><to complete>(?: each| before it times out)? / <it> times? out <duration> after (?:its|the) start / <it> may <run> without (?:a |any )?(?:` + timeoutNames + `) / <it> must (?:<finish> (?:within|in|after at most)|<run>(?: for)? at most) <duration> /
		(?:<it> times?|time) out after <duration> / (?:no <it> may|never|never let <it>|<it> must never|never allow <it> to) <run>(?: for)? more than <duration><to complete> / <it> may at most <run>(?: for)? <duration> / <it> (?:lasts|runs|takes)(?: for)? at most <duration> /
		(?:after|over) <duration> => cancel <it> / cancel after <duration> / over <duration> => (?:stop|end|fail|give up on) <it> / after <duration> => (?:stop|end|fail|give up on) <each one> / <it> over <duration>,? <has failed> / over <duration>,? <it> <has failed> /
		(?:consider|treat) <it> (?:as )?failed after <duration> / wait <at most><duration> for (?:a|an|the|each) (?:response|answer) / never allow more than <duration><to complete> / ` + headed(timeoutNames, `<at most><duration>`) + ` / allow (?:any|unlimited) time<to complete> / allow as much time as (?:it|<it>) needs / never time out / <it> (?:has|have) no (?:` + timeoutNames + `) / <it> never times? out / <it> may <run> (?:without limit|as long as (?:it|they) (?:needs?|takes?|likes?)|any time) / never limit the time of <it> / ` + without(timeoutNames),
		"Allow 1 hour to complete", setDuration("timeout")},
	{`(?:give up|stop) after <count> (?:retries|(?:failed |unsuccessful )?(attempts)|(failures)) / after <count> (?:retries|(?:failed |unsuccessful )(attempts)|(failures))<,> <give up>`, "Give up after 5 retries", func(d *draft, slots []string) {
		d.count(slots[0], min(1, len(slots[1]+slots[2]))) // the first attempt is no retry
		d.exhausted(giveUp)
	}},
	{`(?:stop|give up) after <count> retries and <wait planned>`, "Stop after 5 retries and wait until the next scheduled refresh", func(d *draft, slots []string) {
		d.count(slots[0], 0)
		d.exhausted(nextPlanned)
	}},
	{`(?:give up|stop trying) after <duration>(?: without success)? / after <duration> without success => <give up> / <the model> after <duration> without success <is disabled> / after <duration> without success,? <the model> <is disabled>`,
		"Give up after one week of unsuccessful attempts", func(d *draft, slots []string) {
			d.inWindow = true
			d.openBlock()
			setDuration("give_up_after")(d, slots)
		}},
	{`never give up for (?:lack|want) of a success / never give up,? (?:however long|no matter how long) <it> (?:fails|keeps failing|has been failing)`, "Never give up for lack of a success", set("give_up_after", "none")},
	{`<exhausted> => <rest>`, "After the final unsuccessful retry, wait until the next scheduled refresh, or give up if there is none", func(d *draft, slots []string) {
		ended := d.ended // the sentence itself mentions the last retry, so it may precede the first
		d.afterThat(slots)
		d.ended = ended
	}},
	{`(?:then|finally|afterwards|after that),? <rest>`, "Then give up", (*draft).afterThat},
	{`(?:give|show|use) the reason <text>(?: (?:when|if) <the model> <is disabled>)? / show the message <text> / (?:when|if) <the model> <is disabled> => (?:(?:show|give) <reader>(?: the reason)?|<reader> (?:reads|sees)) <text> / (?:the )?(?:disabled )?reason(?: shown to <reader>)?(?: (?:when|if) <the model> <is disabled>)?(?: is|:) <text>`,
		`Give the reason "thumbnail creation failed"`, setValue("disabled_reason")},
	{`(?:give|show) the usual reason`, "Give the usual reason", set("disabled_reason", "")},

	{`<catch up> <missed> once / <missed> (?:(?:are|is) )?(?:runs?|made up for|caught up on) once(?:, however late)? / (?:if|when) a (?:planned )?refresh (?:was|is) missed => run it once`, "Run a missed refresh once", set("misfire", "run_once")},
	{`<catch up> <missed><younger> / <missed> (?:(?:are|is) )?(?:run|made up for|caught up on)<younger> / (?:if|when) a (?:planned )?refresh (?:was|is) missed => run it<younger> / skip <missed><older> / never <catch up> <missed><older>`, "Run a missed refresh once if it is younger than 1 hour",
		func(d *draft, slots []string) {
			d.set("misfire", "run_if_younger_than "+d.duration("misfire", slots[0]))
		}},
	{`skip <missed> / <missed>: skip / never <catch up> <missed> / <missed> (?:is|are) never (?:run|made up for|caught up on) / (?:if|when) a (?:planned )?refresh (?:was|is) missed => skip it`, "Skip missed refreshes", set("misfire", "skip")},
	{`spread (?:the |all )?(?:starts? of (?:the )?)?(?:(?:planned )?(?:refreshes|runs|starts|attempts)|load)(?: of (?:the|all) models)? (?:over|across) <duration> / ` + headed("spread", "<duration>") + ` / never spread (?:the )?refreshes / ` + without("spread"), "Spread the refreshes over 10 minutes", setDuration("spread")},
	{without("limits?"), "Set no limits", set("limits", []any{})},
	{without("circuit(?: breaker)?") + ` / never (?:use|open) a circuit`, "Open no circuit", set("circuit", "none")},
	{`for each <key> => <rate> and <running>`, "", func(d *draft, slots []string) { d.addLimit(slots[0], slots[3], slots[1], slots[2]) }},
	{`for each <key> => <running> and <rate> / for each <key> => <running> and <count> (?:in|for each) <period>`, "Run at most 4 at a time and start at most 60 in 1 minute for each {host(input_url)}",
		func(d *draft, slots []string) { d.addLimit(slots[0], slots[1], slots[2], slots[3]) }},
	{`for each <key> => <running> / for each <key> => (?:(?:run|allow) )?<at most><count> concurrent <attempts> / each <key> (?:may (?:have|run)|gets|has) at most <count>(?: <attempts>)?(?: running)? <at a time> / limit (?:for )?(?:each )?<key> to <at most><count>(?: <attempts>)? <at a time> / for each <key> => limit <attempts> to <count> <at a time> / limit (?:for )?(?:each )?<key> to <at most><count> concurrent <attempts>`,
		"Run at most 4 at a time for each {host(input_url)}", func(d *draft, slots []string) { d.addLimit(slots[0], slots[1], "", "") }},
	{`for each <key> => <rate> / for each <key> => limit the starts to <count> (?:in|for each) <period>`, "Start at most 60 in 1 minute for each {host(input_url)}", func(d *draft, slots []string) { d.addLimit(slots[0], "", slots[1], slots[2]) }},
	{`let a retry_after close keys / an? (?:worker's )?retry_after <holds back> (?:all|every|the other) models? (?:(?:of|with) (?:its|the|the same)|for each) (?:limit )?keys?`, "Let a retry_after close keys", set("retry_after_scope", string(policy.ScopeKey))},
	{`let a retry_after close no keys / (?:an? )?(?:worker's )?retry_after <holds back> only (?:the|its)(?: own)? model(?: itself| that got it)? / an? (?:worker's )?retry_after <holds back> (?:the|its)(?: own)? model only`,
		"Let a retry_after close no keys", set("retry_after_scope", string(policy.ScopeModel))},
	{`let a retry_after close keys only (?:after|on) http_429`, "Let a retry_after close keys only after http_429", set("retry_after_scope", "auto")},
	{`let a server ask (?:to wait )?(?:for )?<at most><duration> / a server(?:'s retry_after)? may (?:be|ask for|ask to wait(?: for)?) <at most><duration> / ` + headed(`longest (?:retry_after|wait) of a server`, `<duration>`),
		"Let a server ask to wait for at most 1 day", setDuration("max_retry_after")},
	{`stay closed on no calendar`, "Stay closed on no calendar", set("closed", []any{})},
	{`(?:stay|be|remain) closed (?:on|during) (the calendars? |)<names> / stay closed while (the calendars? |)<names> (?:is|are) closed / (?:observe|respect) (the calendars? )<names>(?:: while one of them is closed, nothing starts)? / <nothing starts> on (the calendars? )<names> / (?:while|when|if|during) (the calendars? |)<names>(?: (?:is|are) closed)? => <nothing starts>`,
		"Stay closed on holidays and nightly-maintenance", (*draft).calendars},
	{`(?:(?:keep <the model>|<the model> must (?:be|stay|be kept)) )?fresh within <duration> / keep <the model> never older than <duration> / <the model> must never be (?:older|more) than <duration>(?: old)? / <the model> (?:may|must) be at most <duration> old /
		(?:<the model> (?:is|are|goes|becomes|counts as) |consider <the model> )?stale (?:after|when it is older than) <duration>(?: without success)? / <the model> (?:older than|after) <duration>(?: without success)? (?:is|counts as|goes|becomes) stale /
		after <duration> without success => <the model> is stale / ` + headed(`freshness|fresh data within`, `<duration>`) + ` / ` + without("freshness"), "Keep the model fresh within 26 hours", setDuration("fresh_within")},
	{`(?:warn|warning|(?:<the model> (?:is|are|becomes|counts as) |consider <the model> )?late) (?:after|within) <duration>(?: without success)?`, "Warn after 24 hours without a success", setDuration("warn_within")},

	{`doubt <a success> with less than <number> <metric>`, "Doubt a refresh with fewer than 100 rows", addGuard("min")},
	{`doubt <a success> with more than <number> <metric>`, "Doubt a refresh with more than 100 rows", addGuard("max")},
	{`doubt <a success> with less than <percent> of the usual <metric><of the last>`, "Doubt a refresh with less than 70 percent of the usual rows", func(d *draft, slots []string) {
		slots[0] = percentOff(slots[0])
		addGuard("drop")(d, slots)
	}},
	{`doubt <a success> with (?:more than )?<percent> less <metric> than <usual><of the last>`, "Doubt a refresh with more than 30 percent fewer rows than usual", addGuard("drop")},
	{`doubt <a success> with (?:more than )?<percent> more <metric> than <usual><of the last>`, "Doubt a refresh with more than 30 percent more rows than usual", addGuard("rise")},
	{`(?:doubt no (?:refresh|success|result)|never doubt <a success>)`, "Doubt no refresh", set("guard", []any{})},
	{`(notify|fail|hold)(?: of)? (?:<doubted>|(it))(?: (?:for a person|until a person accepts (?:it|them)))? / (?:if|when) a refresh is doubted => (hold|fail) it`, "Hold a doubted refresh", func(d *draft, slots []string) {
		what := strings.Replace(strings.ToLower(slots[0]), "notify", "tell", 1)
		d.mustKnow(len(slots) == 1 || slots[1] == "" || d.lines["guard"] > 0)
		d.set("on_suspect", what)
	}},
	{`<doubted> (?:counts? as|is|are) (?:an? )?(?:failures?|failed) / <doubted> fails? / treat <doubted> as (?:an? )?(?:failures?|failed)`, "A doubted refresh counts as a failure", set("on_suspect", "fail")},
	{`<doubted> waits? (?:for (?:a person|somebody|someone|approval)(?: to (?:accept|look|decide))?|until (?:a person|somebody) accepts (?:it|them))`, "A doubted refresh waits for a person", set("on_suspect", "hold")},
	{`<doubted>(?: still)? counts?(?:,? (?:but|and) (?:somebody|someone|the owner) is (?:told|notified)|,? but notify (?:somebody|someone))? / notify (?:somebody|someone) (?:of|about) <doubted>`, "A doubted refresh counts, but somebody is told", set("on_suspect", "tell")},

	{`<tell> nobody(?: (?:anything|of anything|about anything))? / nobody is (?:notified|told) / never notify (?:anybody|anyone|<reader>) / ` + without("notifications?|notices?|messages"), "Notify nobody", set("notify", []any{})},
	{`<tell> <reader> (?:(?:of|about) (?:everything|all events)|for each event|about every event)`, "Notify the owner of everything", func(d *draft, _ []string) {
		for _, notice := range policy.Notices {
			d.notify(notice)
		}
	}},
	{without("e-mails?") + ` / never send (?:any )?e-?mails?`, "Send no e-mail", set("email", "none")},
	{`e-?mail <reader> at <mailbox> / send (?:an |all )?e-mails? to <mailbox> / send e-mails? to <reader> at <mailbox> / (?:e-mails?|mail) (?:goes|go|is sent|are sent) to <mailbox> / (?:the )?recipient(?: of (?:the )?e-mails?)?(?: is|:) <mailbox> / e-mail: <mailbox>`,
		"Email the customer at owner_email of the payload", (*draft).emailTo},
	{`<tell> <reader> of no failure`, "Notify the owner of no failure", set("failing_from", "none")},
	{`(?:of|after|on|about|from|at) (?:the|its) <ordinal> failure<in a row>(?: on)? => <tell> <reader>(?: at <mailbox>)? / after <count> failures<in a row> => e-?mail <mailbox> /
		after <count> failures<in a row> => <tell> <reader>(?: at <mailbox>)? / report <the model> as failing (?:from|after|on) (?:the|its) <ordinal> failure<in a row>(?: on)? / report <the model> as failing after <count> failures`,
		"Notify the owner of the third failure in a cycle", (*draft).notifyFailing},
	{`<events> => <tell> <reader>(?: at <mailbox>)? / <events> => e-?mail <mailbox> / <events> => send (?:an )?e-mails? to <mailbox> / <events> => send <reader> an e-mail(?: at <mailbox>)? / <events> => send an e-mail to <reader>(?: at <mailbox>)?`,
		"Notify the owner when refresh is disabled or has recovered", (*draft).notifyOwner},

	{`(?:on|after|at|for) (?:the )?<ordinals> failures? => <rest> / (?:on|after) the <ordinals>(?: one)?, <rest> / (?:if|when) the <ordinals>(?: (?:attempt|refresh|try|run))? fails => <rest> / <ordinals> failures?: <rest> / (?:on|after) failure <count><,> <rest>`, "On the second failure, retry after 1 minute", (*draft).onFailure},
	{`(?:on|after|at) (?:the )?<ordinal> failure`, "On the seventh failure:", func(d *draft, slots []string) {
		k, known := words.Ordinal(slots[0])
		d.mustKnow(known)
		d.block = block{heading: d.now.level}
		d.atFailure(k)
	}},
	{`<on failure> => (<give up>|<wait planned>)`, "On failure, wait until the next scheduled refresh", func(d *draft, slots []string) {
		d.set("retries", []any{})
		d.afterThat(slots)
	}},
	{`never retry(?: at all| failed (?:attempts|refreshes)| (?:on|after) (?:a |any )?failure| on errors)? / <on failure> => never retry(?: at all)? / (?:there are )?no retries(?: at all)? / never retry (?:a )?failed (?:refreshes|attempts|refresh|attempt|runs|run) / (?:retries|retry)(?: are|:) (?:none|off)`, "Do not retry", set("retries", []any{})},
	{`retry by the expression <text>`, `Retry by the expression "k < 5 ? '10m' : false"`, setExpression("retries")},
	{`retry by the pattern <text>`, `Retry by the pattern "10 5s 10m"`, setValue("retries")},
	{`up to an age of <duration><,> <rest> / at most an age of <duration><,> <rest>`, "Up to an age of 1 day, retry after 5 minutes", (*draft).upToAge},
	{`(?:(?:the )?(?:retry )?delays(?: are|:)|use the (?:retry )?delays|(?:the )?retries(?: come)? after|retries:(?: after)?) <delays>`, "Use the delays 1 minute, 5 minutes and 1 hour", func(d *draft, slots []string) {
		d.list = nil
		d.delays(slots)
		d.set("retries", d.list)
	}},
	{`wait <duration> (?:between (?:retries|attempts)|before (?:each|every) retry|each time)`, "Wait 5 minutes between retries", setPart("base")},
	{`(?:vary|randomi[sz]e|jitter) (?:(?:the|each|every|all) )?(?:retry )?delays?(?: randomly)? by <at most><percent> / (?:(?:each|every|the) )?(?:retry )?delays? (?:varies|vary|is varied|are varied)(?: randomly)? by <at most><percent> /
		(?:add|use|with)(?: a)? <at most><percent>(?: of)? (?:random )?jitter(?: to (?:the|each|every|all)(?: retry)? delays?)? / ` + headed("(?:random )?jitter", "<at most><percent>(?: to (?:the|each|every|all)(?: retry)? delays?)?"),
		"Vary the delays by 20 percent", (*draft).vary},
	{`never vary the delays / never (?:use|add) jitter / no jitter (?:on|to|for) the delays / ` + without("jitter"), "Do not vary the delays", set("jitter", 0.0)},

	{`skip <a retry> that <overlap> / <overlapping> => skip (?:it|the retry) / never retry <overlapping> / never start <a retry> that <overlap> / <a retry> must never <overlap> / <a retry> that <overlap> is replaced by it /
		<overlapping> => (?:wait for|run(?: only)?|prefer) <planned> / <overlapping> => <planned> (?:<wins over>|replaces (?:it|the retry)) / (?:<planned>|planned refreshes) <wins over> <a retry>`,
		"Skip retries that overlap with a scheduled refresh", align(policy.AlignPlanned)},
	{`(?:retry|keep retrying) until (?:success|it succeeds)<,> <whatever> / <a retry> <wins over> (?:<planned>|planned refreshes) / <a retry> (?:goes|go|comes|come) first / <overlapping> => (?:the retry <wins over>|(?:run|prefer) the retry)`,
		"Retry until success, whatever is scheduled", align(policy.UntilSuccess)},
	{`retry only at <planned> / (?:if <planned> is planned, )?wait for (?:it|<planned>) (?:instead of|rather than) retrying / instead of retrying, wait for <planned>`, "Retry only at scheduled refreshes", align(policy.PlannedOnly)},
	{`(?:retry or refresh as planned|(?:(?:run|take|start) )?<a retry> or <planned>),? whichever (?:comes|is) (?:first|earlier|sooner) / whichever (?:comes|is) (?:first|earlier|sooner) runs: <a retry> or <planned> / whichever (?:comes|is) (?:first|earlier|sooner), <a retry> or <planned>, runs`,
		"Retry or refresh as scheduled, whichever comes first", align(policy.WhicheverFirst)},
	{`(?:at|with) <planned> => (?:(?:begin|start) <new cycle>|start over) / <planned> (?:begins|starts) <new cycle> / retry only between planned refreshes / <overlapping> => run <planned> and (?:start|begin) <new cycle>`,
		"Begin a new cycle of retries at each scheduled refresh", align(policy.BetweenPlanned)},
	{`(?:align|join) retries (?:with the schedule )?by the expression <text>`,
		`Align retries by the expression "retry_at + timeout > planned_at + 5m ? planned_at : retry_at"`, setExpression("alignment")},
	{`(?:retry|start retries) at any time`, "Retry at any time", set("retry_window", "none")},
	{`retry only <window> / (?:the )?retry window(?: is|:) <window>`, "Retry only between 9 AM and 5 PM", setWindow(false)},
	{`never retry <window>`, "Never retry between 10 PM and 6 AM", setWindow(true)},

	{`retry only on (?:no errors?|nothing)`, "Retry only on no error", set("retry_on", []any{})},
	{`retry only (?:on |after |for )?<errors>`, "Retry only on NetworkError and TimeoutError", setErrors("retry_on")},
	{`(?:everything else|all other errors|any other error|other errors) (?:is|are) (?:final|never retried)`, "Everything else is final", func(d *draft, _ []string) { d.mustKnow(d.lines["retry_on"] > 0) }},
	{`retry on (?:any|every|each) (?:kind of )?error / retry (?:on )?all errors / never retry on (?:no errors?|nothing)`, "Retry on every error", set("never_retry", []any{})},
	{`use the same delays after (?:any|every|each) (?:kind of )?error`, "Use the same delays after every error", set("delays_by_error", map[string]any{})},
	{`never retry (?:on |after |for )?<errors> / give up on <errors> / retry on (?:any error|every error|all errors) except (?:on )?<errors>`, "Never retry on permanent errors", setErrors("never_retry")},
	{`<rest>`, "Open the circuit of each {host(input_url)} after 5 failures of 10 attempts", (*draft).openCircuit},
	{`<rest>`, "Retry up to 5 times with exponential delays from 1 minute, factor 2, at most 1 hour", (*draft).strategy},
	{`(?:on|after|for|with) <errors> => <delay> / <errors>: <delay>`, "On RateLimited errors, retry after 1 hour", (*draft).onError},
	{`retry <errors> (after <duration>)`, "", (*draft).onError},
}
