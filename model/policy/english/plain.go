package english

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// synonyms are other ways to say a word or a phrase that the forms are written in. Nothing at the left: it may be left out.
const synonyms = `
: please, always, automatically
at most: up to, no more than, not more than, never more than, a maximum of, up to a maximum of, at the most, no longer than, not longer than, never longer than, for no more than, for no longer than, for a maximum of, max, max., maximum, not exceeding, no later than, not later than
never: do not, don't, does not, doesn't, won't, will not
must never: must not, may not, should not, can not, cannot, may never, should never, can never, shall not, are not to, is not to
are never: aren't, are not
is never: isn't, is not
has never: hasn't, has not
but never: but not
but at most: but not more than, but no more than
never be: not be
must: has to, have to, needs to, need to, should, shall
may: can, is allowed to, are allowed to
planned: scheduled, regularly scheduled, regular
retry: try again, retry again, retry it, retry them, retry the refresh, retry the attempt, retry a failed attempt, retry failed attempts, retry failed refreshes, retry failed runs, retry a failed refresh, retry a failed run, keep retrying, keep trying, keep re-trying, re-try, try it again, run it again, repeat it, repeat the attempt, attempt again, start again
retry once: try once more, try one more time
exponential delays: delays growing exponentially, delays that grow exponentially
retrying: trying again
retries: re-tries, repetitions
notify: tell, inform, alert
more than: longer than, in excess of
exponential: exponentially growing, exponentially increasing
spread: distribute, stagger
never older than: no older than, not older than
only: solely, exclusively
skip: ignore, omit, leave out
wait: waiting
15 minutes: a quarter of an hour, quarter of an hour
45 minutes: three quarters of an hour
less than: shorter than, fewer than
less: fewer
for each: per, for every, of each, of every, for the same, of the same, for any one, for any
backoff: back-off, backing off
backoff exponentially: back off exponentially
without limit: forever, indefinitely, endlessly, without a limit, without any limit, without end, infinitely, for ever, with no limit, an unlimited number of times, unlimited times, as often as needed
at a time: at the same time, in parallel, concurrently, simultaneously, at any one time, at one time, at any given time
immediately: right away, straight away, without delay, now, instantly, without waiting, without any delay, immediate
e-mail: email
e-mails: emails
nobody: no one
attempt: execution
attempts: executions
time zone: timezone
cancel: abort, kill, terminate, interrupt
cancelled: aborted, killed, terminated, interrupted, canceled
is lost: are lost, count as lost, are considered lost, are taken for lost, are treated as lost, are regarded as lost, counts as lost, is considered lost, is taken for lost, is treated as lost, is regarded as lost, is declared lost, is presumed lost
is silent: are silent, does not give a sign of life, does not send a sign of life, gives no sign of life, gives no signs of life, sends no sign of life, sends no signs of life, shows no sign of life, shows no signs of life, has been silent, was silent, stays silent, remains silent, goes silent, falls silent, says nothing, is quiet, sends nothing, reports nothing
at night: during the night
on weekends: at weekends, at the weekend, on the weekend
outside: outside of, except between
`

const longestPhrase = 7 // words

var plainWords = func() map[string]string {
	all := make(map[string]string)
	for line := range strings.SplitSeq(synonyms, "\n") {
		plainWord, others, _ := strings.Cut(line, ":")
		for phrase := range strings.SplitSeq(others, ",") {
			all[strings.TrimSpace(phrase)] = plainWord
		}
	}
	delete(all, "")
	return all
}()

// plain says a sentence in the words of the forms. Each step is one more way to say the same.
func plain(text string) string {
	var out []string
	for tokens := strings.Fields(text); len(tokens) > 0; {
		count, word := 1, tokens[0]
		for n := min(longestPhrase, len(tokens)); n > 0; n-- {
			phrase := strings.Join(tokens[:n], " ")
			bare := strings.TrimRight(phrase, ",:;")
			if plainWord, known := plainWords[strings.ToLower(bare)]; known {
				count, word = n, plainWord
				if plainWord != "" {
					word += phrase[len(bare):]
				}
				break
			}
		}
		if tokens = tokens[count:]; word != "" {
			out = append(out, word)
		}
	}
	text = strings.Join(out, " ")
	for _, respelling := range respellings() {
		text = respelling.pattern.ReplaceAllString(text, respelling.to)
	}
	return activeVoice(text)
}

type respelling struct {
	pattern *regexp.Regexp
	to      string
}

// respellings bring the parts of a sentence into the order of the forms, in plain words.
var respellings = sync.OnceValue(func() (all []respelling) {
	for _, pair := range [][2]string{
		{`,? instead$`, ""},
		{`\b<duration> at most$`, "at most $1"},
		{`\bby more than half\b`, "by more than 50%"},
		{`^(?:then|finally),? (after|if|when|once|on) `, "$1 "},
		{`^the owner gets (?:a notice|a message|told|notified) `, "notify the owner "},
		{`^only (notify|e-mail) `, "$1 "},
		{`^((?:notify|e-mail) .+) only (when|if|once)\b`, "$1 $2"},
		{`,? \((\d+ \w+ to \d+ \w+)\)`, " from $1"},
		{`^first,? (retry [^,]+, then )`, "$1"},
		{`^(?:we want|there are|there is|make|do|use|allow) ((?:at most )?<count> (?:quick )?retr(?:y|ies)\b)`, "$1"},

		// A condition is one of those that the forms know: after a time, on an error, without success
		{`\b(?:that|which|if <it>|when <it>|once <it>) <run>s?(?: for)? more than\b`, "over"},
		{`\b(?:(?:if|when) <it>|that|which) (?:(?:is|has|have|did|does) )?never(?: yet)? (?:done|over|finish(?:ed)?|completed?|ended|respond(?:ed)?|answer(?:ed)?) (?:after|within|in)\b`, "over"},
		{`\b(?:if|when) <it> (?:is|are) still running after\b`, "over"},
		{`\b(?:if|when|whenever) <it> times out\b`, "on timeout"},
		{`\b(?:if|when|whenever) (?:the (?:error(?: type)?|reason|failure) is|the (?:server|source|worker|host) (?:says|answers|returns|responds|reports)(?: with)?|<it> fails (?:with|because of|due to))\b`, "on"},
		{`\b(?:if|when|whenever) (<errors>) (?:occurs?|happens?|is returned|is reported)\b`, "on $1"},
		{`\b(?:upon|following|in case of|in the case of)\b`, "on"},
		{`\berrors? of (?:the )?type `, ""},
		{`\b(?:(?:if|when|once) |that )(?:(?:<it>|<the model>|nothing) )?(?:has never succeeded|nothing succeeds|has had no success|never succeeds?|keeps failing|(?:has been|is) failing|has failed|fails(?: continuously)?) (?:for|within)(?: more than)? <duration>`, "after $1 without success"},
		{`\b(?:if|when|once) there (?:is|was|has been) no success(?:ful refresh)? (?:for|within|in)(?: more than)? <duration>`, "after $1 without success"},
		{`\b(?:if|when|whose) (?:(?:the|its) )?last success is (?:older than|more than) <duration>(?: old| ago)?`, "after $1 without success"},
		{`\bwithout success for <duration>`, "after $1 without success"},
		{`<duration> (?:of (?:(?:unsuccessful |failed )?(?:refresh )?(?:attempts|retries)|(?:continuous |constant )?failures|failing)|without (?:an?y? )?success(?:ful (?:refresh|attempt|run))?)\b`, "$1 without success"},
		{`\b(?:if|when|once) (?:<it>|<the model>) (?:fails|has failed) (<count>) times(?: in a row)?\b`, "after $1 failures"},
		{`\b(?:if|when|once) (?:<it>|<the model>) fails for the <ordinal> time\b`, "after the $1 failure"},
		{`\b(<count>) (?:consecutive failures|failures in a row|failures in succession)\b`, "$1 failures"},
		{`\b(?:let|keep) ((?:the|its) (?:customer|owner|user|client)) (?:know|informed)\b`, "notify $1"},
		{`\b(?:notify|warn|e-?mail) (\S+@\S+)`, "e-mail $1"},

		// Retries
		{`\bafter (?:the|each|every) (?:failure before|previous (?:failure|attempt)|failed attempt)\b`, "later"},
		{`^only (?:(?:allow|start|make) )?retr(?:y|ies)\b`, "retry only"},
		{`^retries (?:(?:are|may|can|must) )?(?:(?:be )?(?:start|run|happen|made|allowed|started) )?only(?: (?:be )?(?:start|run|happen|allowed|made|started))?\b`, "retry only"},
		{`^(?:(?:allow|start|make) retries(?: only)?|retries are (?:allowed|permitted)(?: only)?) `, "retry only "},
		{`^retry only (once|<count> times?)\b`, "retry $1"},
		{`\b(backoff|delays) between (\d+ [a-z]+) and (\d+ [a-z]+)`, "$1 from $2 to $3"},
		{`^retries must never (?:start|run|happen|be made) `, "never retry "},
		{`^retry (.+) only$`, "retry only $1"},
		{`^retry only (?:on )?(.+) and nothing else$`, "retry only on $1"},
		{`^retry (?:on )?(.+) and (?:on )?nothing else$`, "retry only on $1"},
		{`^(?:retry nothing|never retry anything|never retry on anything) (?:but|except) (?:on )?`, "retry only on "},
		{`^(?:there are )?no (?:retries|retry) (on|between|from|before|after|during|at|for|outside)\b`, "never retry $1"},
		{`\bdrop (<a retry>|it)\b`, "skip $1"},
		{`\band once more (after|in)\b`, "and $1"},
		{`^(?:(?:an?|each|every|all) )?failed (?:refresh(?:es)?|attempts?) waits? `, "on failure, wait "},
		{`\bduring the day,? (between|from)\b`, "$1"},
		{`^retry only (?:on )?these errors: `, "retry only on "},
		{`^retry only failed (?:refreshes|attempts) `, "retry only "},
		{`^retries (?:may|must) (?:start|run|happen) (.+) only$`, "retry only $1"},
		{`^(?:treat|consider) (<errors>) as (?:final|permanent)$`, "never retry on $1"},
		{`^retry never `, "never retry "},
		{`^outside (?:the hours )?(.+?),? (?:nothing is retried|never retry|there are no retries)$`, "retry only $1"},
		{`^never retry outside (?:the hours )?`, "retry only "},
		{`^<errors> (?:is|are) (?:final|permanent)(?:: never retry)?$`, "never retry on $1"},

		// Doubts
		{`\bthe number of `, "the "},
		{`\b(?:that|which|if it|when it) has (no|less|more)\b`, "with $1"},
		{`^(?:if|when) (<a success>) has (no|less|more) ([^,]+), doubt it$`, "doubt $1 with $2 $3"},
		{`(<a success>) with(?:out(?: any)?| no| 0) <metric>`, "$1 with less than 1 $2"},
		{`\bwith over\b`, "with more than"},
		{`\bhalf (?:of )?the usual\b`, "50% of the usual"},
		{`\bmore than (?:twice|double) (?:the )?usual <metric>`, "more than 100% more $1 than usual"},
		{`\b(?:if|when|whose) (?:(?:the|its) )?<metric> (?:(?:drops?|falls?|decreases?|shrinks?) (?:by )?(?:more than )?<percent>|(?:is|are) (?:more than )?<percent> (?:below|less than|lower than) <usual>)`, "with more than $2$3% less $1 than usual"},
		{`\b(?:if|when|whose) (?:(?:the|its) )?<metric> (?:(?:rises?|grows?|increases?) (?:by )?(?:more than )?<percent>|(?:is|are) (?:more than )?<percent> above <usual>)`, "with more than $2$3% more $1 than usual"},
		{`\b(?:if|when|whose) (?:(?:the|its) )?<metric> (?:is|are) (?:below|under|less than) <number>$`, "with less than $2 $1"},
		{`\b(?:if|when|whose) (?:(?:the|its) )?<metric> (?:(?:is|are) (?:above|more than)|exceeds?) <number>$`, "with more than $2 $1"},
		{`\b(?:if|when) there are (less|more) than\b`, "with $1 than"},
		{`\b(?:if|when) there are no <metric>`, "with less than 1 $1"},
		{`^(with (?:more|less) than [^,]+), doubt <a success>$`, "doubt a refresh $1"},
	} {
		all = append(all, respelling{regexp.MustCompile(`(?i)` + slots(pair[0])), pair[1]})
	}
	return all
})

// participles are what may be said in the passive voice: "A refresh without rows is doubted".
var participles = map[string]string{"retried": "retry", "doubted": "doubt", "cancelled": "cancel", "stopped": "cancel", "ended": "cancel", "limited": "limit", "skipped": "skip",
	"ignored": "skip", "dropped": "skip", "spread": "spread", "held": "hold", "notified": "notify", "told": "notify", "informed": "notify", "warned": "notify"}

var (
	passive = regexp.MustCompile(`(?i)^((?:if|when|after|on|once) [^,]+, )?(only )?([^,:;]+?) ((?:(?:must|may|will) )?(?:(?:never|only) )?(?:is|are|gets?|be) (?:(?:never|only) )?)(` +
		strings.Join(slices.Sorted(maps.Keys(participles)), "|") + `)\b(.*)$`)
	noSubject = regexp.MustCompile(`(?i)\b(?:never|not|only|when|if|while|until|unless|once|notify|e-mail|tell|that (?:the|it|its|refresh))\b`)
)

// activeVoice makes "retry timeouts" of "timeouts are retried".
func activeVoice(text string) string {
	found := passive.FindStringSubmatch(text)
	if found == nil || noSubject.MatchString(found[3]) {
		return text
	}
	condition, subject, verb, rest := found[1], " "+found[3], participles[strings.ToLower(found[5])], found[6]
	said := strings.ToLower(found[2] + found[4])
	never, only := strings.Count(said, "never"), strings.Count(said, "only")
	switch {
	case never+only > 1:
		return text
	case strings.EqualFold(subject, " nothing"):
		return condition + "never " + verb + rest
	case never > 0:
		verb = "never " + verb
	case only > 0:
		verb += " only"
	}
	return condition + verb + subject + rest
}
