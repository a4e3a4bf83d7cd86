package english

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/refreshd/refreshd/model/words"
)

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
	"<window>", `(`+someDays+`(?: `+someHours+`)?|`+someHours+`(?: `+someDays+`)?)`, // of package schedule
	"<strategy>", `(.+)`, // traits
	"<backoff>", `((?:fixed|linear|exponential|fibonacci) .+)`, // traits
	"<events>", `((?:when|if|that|notifying \w+ that|saying that) .+)`, // events

	"<duration>", `(`+words.DurationPattern+`)`,
	"<period>", `(`+words.DurationPattern+`|second|minute|hour|day)`,
	"<ordinals>", `(`+someOrdinal+`(?:(?:, and |, | and )`+someOrdinal+`)*|first (?:`+someCount+`))`,
	"<ordinal>", `(`+someOrdinal+`)`,
	"<count>", `(`+someCount+`)`,
	"<number>", `(\d+(?:\.\d+)?)`,
	"<percent>", `(\d+(?:\.\d+)?) ?(?:%|percent)`,
	"<text>", `("\d+")`,
	"<value>", `("\d+"|[^\s"]+)`,
	"<names>", `(`+someName+`(?:(?:, and |, or |, | and | or )`+someName+`)*)`,
	"<errors>", `(`+someError+`(?:(?:, and |, or |, | and | or )`+someError+`)*)`,
	"<key>", `(\{[^{}"]*\})`,
	"<mailbox>", `(`+someMailbox+`)`,

	// Not captured
	"<,>", `[,:]?`,
	"<up to>", `(?:(?:up to|at most|(?:no|not) more than) )?`,
	"<at most>", `(?:up to|at most|no more than|only)`,
	"<at a time>", `(?: attempts?)? at (?:a time|the same time|once)`,
	"<for each>", `(?:for each|for every|per)`,
	"<not>", `(?:do not|never)`,
	"<tell>", `(?:notify|e-?mail|tell)`,
	"<an attempt>", `(?:an?|each|every) (?:attempt|refresh)`,
	"<last retry>", `the (?:final|last) (?:unsuccessful |failed )?(?:retry|attempt)`,
	"<to complete>", `(?: to (?:complete|finish|respond)| for (?:a|the|each) (?:response|attempt|refresh))?`,
	"<failing>", `(?: of (?:(?:unsuccessful |failed )?(?:refresh )?(?:attempts|retries)|failures|failing)| without (?:a )?success)`,
	"<retries fail>", `(?:(?:all|the) retries (?:fail|have failed|are exhausted|are used up)|every retry (?:fails|has failed)|the (?:final|last) retry (?:fails|has failed))`,
	"<missed>", `(?:(?:a )?missed refresh|missed refreshes|refreshes that were missed)`,
	"<scheduled>", someScheduled,
	"<planned>", `(?:until|for) (?:the )?next `+someScheduled+` refresh`,
	"<planned one>", `(?:(?:a|the|the next) (?:`+someScheduled+` refresh|original timing)|(?:the )?`+someScheduled+` refreshes)`,
	"<whatever>", `(?:whatever is `+someScheduled+`|regardless of the schedule)`,
	"<else>", `(?:,? (?:or|and) give up (?:if|when) (?:there is none|none is `+someScheduled+`))?`,
	"<the model>", `(?:auto-?refresh|refresh(?:ing)?|`+words.NounPattern+`)`,
	"<reader>", `(?:(?:the|its) )?(?:customer|owner|user|client)`,
)

var (
	someOrdinal = `(?:\d{1,4}(?:st|nd|rd|th)|(?:` + words.OrdinalPattern + `))`
	someCount   = `\d{1,7}|` + strings.TrimSuffix(words.NumberPattern, "|an|a")
)

const (
	// someMailbox is who gets e-mail: a field of the payload, a label or an address.
	someMailbox   = `[a-z_][\w-]* of (?:the|its) payload|(?:the|its) label [a-z][\w.-]*|\{(?:payload|label): ?[\w.-]+\}|"\d+"|[^\s"{}]+@[^\s"]+`
	someName      = `(?:"\d+"|[a-z_][\w.:/-]*)`
	someError     = `(?:(?:an? )?(?:"\d+"|(?:http )?[1-5]\d\d|http_[1-5]xx|[a-z_][\w.:/-]*)(?: errors?)?)`
	someScheduled = `(?:scheduled|planned)`
	someDay       = `(?:weekdays?|workdays|working days|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|wed|thu|fri|sat|sun)`
	someDays      = `(?:on )?` + someDay + `(?:(?:, and |, | and | to |-)` + someDay + `)*`
	someHour      = `(?:\d{1,2}(?::00)?(?: ?[ap]\.?m\.?)?|noon|midnight)`
	someHours     = `(?:(?:between|from) ` + someHour + ` (?:and|to|until) ` + someHour + `|before ` + someHour + `)`
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
