package english

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/refreshd/refreshd/model/words"
)

// form is a pattern of sentences in plain words, and its meaning. No pattern accepts any word: each is known or stands in a slot that is read on.
type form struct {
	patterns string // one fits, between slashes; with slots such as <duration>. Of "A => B", B may come first
	example  string // what an error suggests
	apply    func(d *draft, slots []string)
}

// list writes items of a list: "a, b and c".
func list(item string) string {
	return item + `(?:(?:,? and |,? or |, )(?:(?:on|after) )?` + item + `)*`
}

var (
	someOrdinal  = `(?:\d{1,4}(?:st|nd|rd|th)|(?:` + words.OrdinalPattern + `))`
	someSpan     = `(?:\d+(?:, and |, | and ))*(?:(?:\d+(?:\.\d+)?|half an?|` + words.NumberPattern + `) ?(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?: and a half)?)`
	someOrdinals = `(?:first|next) ` + someCount + `|` + list(`(?:the )?`+someOrdinal)
	someCount    = `(?:\d{1,7}|` + strings.TrimSuffix(words.NumberPattern, "|an|a") + `)`
)

const (
	someTries = `(?: (?:the |each |every |all |two )?(?:attempts?|retries|retry|tries|try|them|each|one))?`
	someName  = `(?:"\d+"|[a-z_][\w.:/-]*)`
	someError = `(?:(?:an?y? |all )?(?:"\d+"|(?:http |status )?[1-5]\d\ds?|http_[1-5]xx|(?:http )?[1-5]xx|[a-z_][\w.:/-]*)(?: (?:errors?|status|responses?))?)`
	someDay   = `(?:weekdays?|workdays|working days|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|wed|thu|fri|sat|sun)`
	// someMailbox is who gets e-mail: a field of the payload, a label or an address.
	someMailbox = `(?:the (?:address|one) in )?(?:[a-z_][\w-]* (?:of|in|from) (?:the|its) payload|(?:the )?payload field [a-z_][\w-]*|(?:the )?field [a-z_][\w-]* (?:of|in|from) (?:the|its) payload|` +
		`(?:the|its) label [a-z][\w.-]*|\{(?:payload|label): ?[\w.-]+\}|"\d+"|[^\s"{}]+@[^\s"]+)`
)

var slotPatterns = strings.NewReplacer(
	// Read on by a grammar of their own
	"<rest>", `(.+)`, // actions, traits, a schedule, RRULE lines
	"<delay>", `((?:retry|wait|never|give|the delay|the next retry) .+)`, // actions
	"<window>", `((?:(?:between|from|before|after|at|in|during) .+|(?:on )?`+someDay+`\b.*))`, // of package schedule
	"<events>", `((?:when|if|that|once|as soon as|whenever|notifying \w+ that|saying that) .+)`, // events

	"<duration>", `(`+words.DurationPattern+`)`,
	"<length>", `(\d+[- ](?:second|minute|hour|day)s?)`,
	"<delays>", `(`+someSpan+`(?:(?:,? and then |,? then |, and |, | and (?:again )?)(?:(?:after|in) )?`+someSpan+`)*)`,
	"<period>", `(`+words.DurationPattern+`|second|minute|hour|day)`,
	"<ordinals>", `(`+someOrdinals+`)`,
	"<ordinal>", `(`+someOrdinal+`)`,
	"<count>", `(`+someCount+`)`,
	"<number>", `(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)`,
	"<percent>", `(\d+(?:\.\d+)?) ?(?:%|percent)`,
	"<text>", `("\d+")`,
	"<value>", `("\d+"|[^\s"]+)`,
	"<names>", `(`+list(someName)+`)`,
	"<errors>", `(`+list(someError)+`)`,
	"<key>", `(\{[^{}"]*\}|host of (?:the )?[a-z_][\w-]*)`,
	"<metric>", `("\d+"|[a-z][a-z0-9_]*)`,
	"<of the last>", `(?: of the last (\d{1,3})(?: (?:good )?(?:results|refreshes|successes))?)?`,
	"<mailbox>", `(`+someMailbox+`)`,

	// Not captured
	"<,>", `[,:]?`,
	"<after it>", `(?: after (?:the|each) (?:failure|attempt))?`,
	"<at most>", `(?:at most )?`,
	"<it>", `(?:it|(?:(?:an?|each|every|the|any|all|one|its) )?(?:single )?(?:attempts?|refresh(?:es)?|runs?|jobs?))`,
	"<the model>", `(?:(?:the )?auto-?refresh|(?:the )?refresh(?:ing)?|`+words.NounPattern+`)`,
	"<run>", `(?:run|take|last|need)`,
	"<finish>", `(?:complete|finish|respond|answer|end|be (?:done|finished|completed|complete|over))`,
	"<to complete>", `(?: to (?:complete|finish|respond|run)| for (?:a|the|each) (?:response|answer|attempt|refresh|run|job))?`,
	"<of>", `(?:for each|(?:for|of|on)(?: an?| the)?)`,
	"<last>", `(?:(?:the|its) )?(?:last )?`,
	"<running>", `(?:(?:run|allow|have|start|let|there may be) )?(?:at most|only) <count>(?: <attempts>)?(?: may)?(?: run)? <at a time>`,
	"<rate>", `(?:(?:start|allow) )?(?:at most|only) <count>(?: <attempts>)?(?: may)?(?: start)? (?:in|for each|every) <period>`,
	"<at a time>", `(?:at a time|at once)`,
	"<attempts>", `(?:attempts?|refresh(?:es)?|models?|runs?|jobs?|starts?)`,
	"<each one>", `(?:(?:an?|each|every|any) (?:single )?(?:attempt|refresh|run|job)|the (?:attempt|run|job))`,
	"<has failed>", `(?:has failed|have failed|fails?|is a failure|(?:counts as|is (?:considered|treated as)) (?:failed|a failure))`,
	"<worker>", `(?:(?:an?|the|each|every|any) worker|(?:all )?workers)`,
	"<silent>", `(?:(?:if|when) there (?:is|are) no signs? of life(?: from (?:it|<worker>))? for <duration>|without (?:a sign|any sign|signs) of life for <duration>|(?:if|when|that|which) (?:(?:it|they|<worker>) is silent|is silent|nothing is heard (?:of|from) (?:it|<worker>)) for (?:more than )?<duration>|after <duration> (?:of silence|without (?:a sign|any sign|signs) of life))`,
	"<younger>", `(?: once)?(?: only)? (?:if (?:it is|they are)|that (?:is|are)) (?:(?:younger|less) than|at most) <duration>(?: old| late)?`,
	"<older>", `(?: that (?:is|are)| by| if (?:it is|they are))? (?:older|more) than <duration>(?: old| late)?`,
	"<doubted>", `(?:(?:(?:a|each|every|the) )?doubted (?:refresh(?:es)?|success(?:es)?|results?))`,
	"<holds back>", `(?:delays?|holds? back|closes?|affects?|applies to)`,
	"<nothing starts>", `(?:(?:nothing|no attempt|no refresh) (?:may )?(?:starts?|runs?|is started)|never (?:start|refresh|run)(?: anything| attempts| any attempt)?|(?:start|run|refresh) nothing)`,
	"<overlapping>", `(?:(?:if|when|whenever) (?:<a retry> and <planned> (?:would )?overlap|<a retry> <overlap>)|even if it <overlap>)`,
	"<new cycle>", `(?:a new cycle|over)(?: of retries)?`,
	"<tries>", someTries,
	"<pause>", `(?:delay|pause|wait|gap|interval|break)`,
	"<between>", `(?: (?:in )?between`+someTries+`)?`,
	"<immediately>", `(?:immediately|at once)`,
	"<give up>", `(?:give up(?: on <the model>)?|stop trying|panic|(?:disable|stop|deactivate) <the model>|(?:switch|turn) (?:off <the model>|<the model> off))`,
	"<is disabled>", `(?:gives up|(?:is|gets|has been|was) (?:disabled|deactivated|switched off|turned off))`,
	"<tell>", `(?:notify|warn|e-?mail)`,
	"<reader>", `(?:(?:the|its) )?(?:customer|owner|user|client)`,
	"<planned>", `(?:(?:the|an?|its|each|every|any) )?(?:next )?(?:planned (?:refresh(?:es)?|runs?|times?|one)|schedule|original timing)`,
	"<wait planned>", `(?:(?:wait|do nothing) (?:for|until)|(?:go on|continue|carry on|resume|proceed|retry) (?:with|at)) <planned>`,
	"<or else>", `(?:,? (?:or|and) give up (?:if|when) (?:there is none|none is planned))?`,
	"<on failure>", `(?:(?:on|after) (?:(?:an?|each|every|any) )?(?:failures?|failed attempt)|(?:if|when|whenever) (?:<it>|`+words.NounPattern+`) fails)`,
	"<exhausted>", `(?:(?:if|when|after|once|as soon as) (?:(?:all|the|all the|all of the|its) (?:retries|attempts) (?:(?:have )?(?:fail|failed|run out|been used(?: up)?)|are (?:exhausted|used up|spent|over))|`+
		`every (?:retry|attempt) (?:fails|has failed)|<last retry> (?:fails|has failed)(?: too| as well)?|(?:it )?(?:still )?fails after (?:all|the) retries|no retr(?:y|ies) (?:is|are) left|no(?: more)? retries remain|there are no(?: more)? retries left|no retry (?:succeeds|works|helps)|none of the retries (?:succeeds?|works?|helps?)|(?:it|that|this) (?:still|also) fails|that fails(?: too| again| as well)?|it fails again|retries (?:run out|are exhausted|are used up))|`+
		`after (?:<last retry>|(?:all )?(?:the )?retries)|on any (?:further|other|later) failure|after another failure)`,
	"<last retry>", `the (?:final|last) (?:unsuccessful |failed )?(?:retry|attempt|failure)`,
	"<in a row>", `(?: in a (?:row|cycle))?`,
	"<a retry>", `(?:(?:an?|the|any|its) retry|retries)`,
	"<wins over>", `(?:(?:go(?:es)?|comes?|runs?) (?:first|before)|wins?(?: over)?|(?:has|have) priority(?: over)?|takes? precedence(?: over)?)`,
	"<overlap>", `(?:(?:would|still) )*(?:overlaps?(?: with)?|(?:be|is) (?:still )?running (?:when|at)|(?:must )?never (?:end|finish|be done) before|collides? with|runs? into|coincides? with|clash(?:es)? with) <planned>(?: (?:begins|starts|is due))?`,
	"<missed>", `(?:(?:(?:an?|the|all|any) )?(?:missed (?:planned )?(?:refresh(?:es)?|runs?)|(?:planned )?refresh(?:es)? (?:that (?:was|were) )?missed))`,
	"<catch up>", `(?:run|catch up (?:on|with)|make up for|repeat)`,
	"<whatever>", `(?:(?:whatever|no matter what) is planned|regardless of <planned>|even if (?:another refresh|<planned>|a refresh|the next refresh) is (?:planned|due)(?: in the meantime| meanwhile)?|ignoring <planned>)`,
	"<a success>", `(?:it\b|(?:(?:an?|each|every|any|the) )?(?:refresh(?:es)?|success(?:es)?|results?))`,
	"<usual>", `(?:(?:the )?(?:usual|median)|usual|normal|before)`,
)

// slots puts the pattern of each slot in its place. A slot may have others inside.
func slots(pattern string) string {
	for range 4 {
		pattern = slotPatterns.Replace(pattern)
	}
	return pattern
}

// lazy is a pattern that is compiled when it is first needed.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)` + slots(pattern)) })
}

type compiled struct {
	*form
	*regexp.Regexp
	turned int // so many slots at the end are the first ones: "B, A" of "A => B"
}

// take returns the slots of a text that fits, and what is left behind it.
func (c compiled) take(text string) (slots []string, rest string, fits bool) {
	found := c.FindStringSubmatchIndex(text)
	if found == nil {
		return nil, text, false
	}
	for i := 2; i < len(found); i += 2 {
		slots = append(slots, strings.TrimRight(text[max(0, found[i]):max(0, found[i+1])], ",:"))
	}
	first := len(slots) - c.turned
	return slices.Concat(slots[first:], slots[:first]), text[found[1]:], true
}

func compile(forms []form, end string) (all []compiled) {
	for i := range forms {
		for _, pattern := range betweenPatterns.Split(forms[i].patterns, -1) {
			condition, action, turns := strings.Cut(slots(pattern), " => ")
			add := func(pattern string, turned int) {
				all = append(all, compiled{&forms[i], regexp.MustCompile(`(?i)^(?:` + pattern + `)` + end), turned})
			}
			if !turns {
				add(condition, 0)
				continue
			}
			add(`(?:`+condition+`)[,:]? (?:`+action+`)`, 0)
			add(`(?:`+action+`),? (?:`+condition+`)`, regexp.MustCompile(condition).NumSubexp())
		}
	}
	return all
}

var betweenPatterns = regexp.MustCompile(`\s+/\s+`)

// apply applies the forms that fit until one knows what the sentence says.
func (d *draft) apply(grammar []compiled, text string) bool {
	for _, c := range grammar {
		if slots, _, fits := c.take(text); fits {
			before := d.copy()
			if c.apply(d, slots); d.known() {
				return true
			}
			*d = before
		}
	}
	return false
}

// applyAll applies the traits that a text has one behind the other, in any order, and reports whether nothing is left.
func (d *draft) applyAll(grammar []compiled, text string) bool {
	for text != "" && d.err == nil {
		before := len(text)
		for _, c := range grammar {
			if slots, rest, fits := c.take(text); fits && before > len(rest) {
				text = rest
				c.apply(d, slots)
				break
			}
		}
		if len(text) == before {
			return false
		}
	}
	return true
}

// The grammars are compiled when the first text is read: most runs of the program read none.
var (
	writtenGrammar  = sync.OnceValue(func() []compiled { return compile(asWritten, "$") })
	sentenceGrammar = sync.OnceValue(func() []compiled { return compile(sentences, "$") })
	actionGrammar   = sync.OnceValue(func() []compiled { return compile(actions, "$") })
	retryGrammar    = sync.OnceValue(func() []compiled { return compile(retryTraits, betweenTraits) })
	circuitGrammar  = sync.OnceValue(func() []compiled { return compile(circuitTraits, betweenTraits) })
)

const betweenTraits = `(?:[,:;]?(?: and then| and| but| then)? |[,:]?$)`

var knownSentences = sync.OnceValue(func() *words.Phrasebook {
	examples := []string{"On failure, retry after 5 minutes"}
	for _, f := range slices.Concat(asWritten, sentences, actions) {
		if f.example != "" {
			examples = append(examples, f.example)
		}
	}
	for _, ordinal := range words.Firsts {
		examples = append(examples, "On the "+ordinal+" failure, retry immediately", "On the "+ordinal+" failure, retry after 1 minute")
	}
	return words.NewPhrasebook(examples)
})
