package english

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// retryTraits are the parts of a sentence about retries, in any order: "up to 5 times, 5 minutes apart". The first that fits is taken.
var retryTraits = []form{
	{patterns: `<on failure> / (?:every|each|any) failure / (?:(?:an?|every|each|all) )?failed (?:attempts?|refresh(?:es)?|runs?)`, apply: func(d *draft, _ []string) { d.onAny = true }},
	{patterns: `once every <period> / one every <period>`, apply: everyPause},
	{patterns: `(?:with |for |a )?<at most><count> (?:times?(?: at most)?|more times?|(?:retries|retry|retry attempts)(?: only| at most)?) / (\d+)x / <at most>(once|twice|one time)(?: at most)? / (a single retry|one retry)(?: only)? / at most (?:retries|number of retries)(?: of| is|:)? <count> / (once) more`,
		apply: func(d *draft, slots []string) { d.count(slots[0], 0) }},
	{patterns: `(?:try )?<at most><count> (?:times|attempts|tries) (?:in total|altogether|in all)`, apply: func(d *draft, slots []string) { d.count(slots[0], 1) }},
	{patterns: `until (?:success|it succeeds)`, apply: align(policy.UntilSuccess)},
	{patterns: `without limit`, apply: func(d *draft, _ []string) { d.setInner("retries.count", "retries.count") }},
	{patterns: `every <period> / (?:spaced )?<duration> apart / with <duration> (?:in )?between<tries> / (?:with )?(?:a|an) (?:fixed )?<pause> of <duration><between> /
		with (?:an? )?(?:fixed )?<length> <pause>s?<between> / at <length> intervals / (?:at|in) intervals of <duration> / delay(?: of|:)? <duration> / wait <duration> (?:each time|between<tries>|before each (?:retry|attempt)) /
		after <duration> each(?: time)? / each time after <duration> / each after <duration> / <duration> after each failure`, apply: everyPause},
	{patterns: `(?:with |use )?(?:an? )?(fixed|linear|exponential|fibonacci) (?:delays?|backoff|retries) / backoff(?: is|:)? (exponential|linear|fibonacci)(?:ly)?`, apply: func(d *draft, slots []string) { d.part("strategy", strings.ToLower(slots[0])) }},
	{patterns: `(?:(?:with )?(?:an? )?delays? )?(?:(?:which|that) )?(doubl|tripl)(?:e|es|ing)(?: (?:(?:the|each) <pause>|it))?(?: (?:each time|(?:after|with) each (?:retry|failure|attempt)|every time))?`, apply: (*draft).grow},
	{patterns: `(?:of|from|(?:starts?|starting|begins?|beginning|growing) (?:at|with|from|after)(?: an? (?:delay|base) of)?|(?:with )?(?:an? )?(?:base|(?:initial|first|starting|minimum) delay)(?: of|:)?) <duration>`, apply: setPart("base")},
	{patterns: `(?:by the |with (?:a )?|a )?factor(?: of)? <number>`, apply: (*draft).factor},
	{patterns: `(?:to |and |with )?at most <duration>(?: between retries)? / (?:with |and )?(?:a )?cap(?:ped)?(?: of| at|:)? <duration> / to <duration> / (?:with )?a limit of <duration> / at most delay(?: of|:)? <duration> / never wait more than <duration>`, apply: setPart("cap")},
	{patterns: `(?:with |and )?<at most><percent>(?: of)?(?: random)? jitter / (?:with )?(?:a )?(?:random )?jitter(?: of|:)? <at most><percent>`, apply: (*draft).vary},
	{patterns: `(?:with )?no jitter / without jitter`, apply: set("jitter", 0.0)},
	{patterns: `wait (?:for )?<duration>,? (?:and then|and|then) retry`, apply: (*draft).delays},
	{patterns: `<immediately>`, apply: func(d *draft, _ []string) { d.list = append(d.list, "0s") }},
	{patterns: `(?:after|in|with delays of) <delays><after it>`, apply: (*draft).delays},
	{patterns: `<duration> (?:later|after (?:the|each) failure)`, apply: (*draft).delays},
	{patterns: `<delays><after it>`, apply: func(d *draft, slots []string) {
		d.delays(slots)
		d.mustKnow(strings.Contains(d.now.text, ":") && (len(d.list) > 1 || d.parts["strategy"] != nil))
	}},
}

var (
	retryHead    = lazy(`^(?:(?:the )?(?:retry )?delays?|retry|retries|use)[,:]? `)
	onFailure    = lazy(`^<on failure>[,:]? `)
	aboutRetries = lazy(`^(?:retry|retries|try)\b|(?:^|at most )(?:<n>|an?) (?:single )?retr(?:y|ies)\b|^(?:use )?(?:an? )?(?:(?:fixed|linear|exponential|fibonacci) )?(?:backoff|delays?|retries)\b|^at most (?:number of )?retries\b|^wait (?:for )?\S+ \S+,? (?:and |then )+retry\b|^(?:double |triple )?the delay\b`)
)

func (d *draft) count(text string, attempts int) {
	d.part("count", float64(countOf(text)-attempts))
}

func everyPause(d *draft, slots []string) {
	d.part("strategy", "fixed")
	d.part("base", d.duration("retries.base", period(strings.ReplaceAll(slots[0], "-", " "))))
}

func (d *draft) grow(slots []string) {
	if d.parts["strategy"] != "exponential" {
		d.part("strategy", "exponential")
	}
	if strings.EqualFold(slots[0], "tripl") {
		d.part("factor", 3.0)
	}
}

func (d *draft) factor(slots []string) {
	n, err := strconv.ParseFloat(slots[0], 64)
	d.refuseIf(err != nil, "a number that a float64 can hold", d.found())
	d.part("factor", n)
}

// aRate matches numbers that do not count all retries, but those in a time or at once.
var aRate = regexp.MustCompile(`(?i)(?:times?|once|twice) (?:an?|each|every|for each) (?:second|minute|hour|day|week)\b|(?:times|twice) (?:immediately|at once)\b`)

// inAll matches a time for all retries: "up to 5 times in 10 minutes".
var inAll = regexp.MustCompile(`(?i)(?:times|retries|twice),? in \d`)

// strategy reads the sentence about retries, trait by trait, to its end.
func (d *draft) strategy(slots []string) {
	before := maps.Clone(d.parts)
	on := onFailure().FindString(slots[0])
	text := slots[0][len(on):]
	d.list, d.onAny = nil, on != ""
	if !aboutRetries().MatchString(text) || !d.applyAll(retryGrammar(), text[len(retryHead().FindString(text)):]) || aRate.MatchString(slots[0]) || waitsTwice.MatchString(text) {
		d.fail(errNotKnown)
		return
	}
	news := func(part string) bool { return before[part] == nil && d.parts[part] != nil }
	grows, based := news("strategy"), news("base")
	switch once := len(d.list) == 1 && d.list[0] != "0s" && !based && !inAll.MatchString(slots[0]); {
	case news("cap") && d.parts["strategy"] == "fixed" && !strings.Contains(strings.ToLower(slots[0]), "fixed"), // "every 5 minutes, up to 1 hour"
		once && news("count") && !grows && twoUnits.MatchString(slots[0]), // "twice, after 1 hour and 30 minutes"
		len(d.list) == 0 && d.onAny && !grows && !news("count"):
		d.fail(errNotKnown)
	case len(d.list) == 0 && (grows || !based && !news("cap") && !news("factor")):
	case once && (grows || news("count") && d.parts["count"].(float64) > 1): // "after 5 minutes, up to 3 times"
		d.part("base", d.list[0])
	case once && d.onAny && !news("count"): // "on failure, retry after 5 minutes"
		d.part("strategy", "fixed")
		d.part("base", d.list[0])
		d.each = true
	case grows, based, len(d.list) == 0, len(d.list) == 1 && !news("count"):
		d.fail(errNotKnown)
	default:
		d.set("retries", d.list)
	}
}

var (
	waitsTwice = regexp.MustCompile(`(?i)^wait .*\bretry (?:after|in|immediately|at once|every)\b`)
	twoUnits   = regexp.MustCompile(`(?i)\d ?[a-z]+ and \d+ ?[a-z]+`)
)

func (d *draft) part(name string, value any) {
	field := "retries"
	if name == "count" {
		field = "retries.count"
	} else if d.doc["retries"] != nil {
		d.once("retries", d.lines["retries"])
	}
	d.parts[name] = value
	d.setInner(field, "retries."+name)
}

func setPart(name string) func(*draft, []string) {
	return func(d *draft, slots []string) { d.part(name, d.duration("retries."+name, slots[0])) }
}

func countOf(text string) int {
	lower := strings.ToLower(text)
	if n, known := words.Number(lower); known {
		return n
	}
	return map[string]int{"once": 1, "twice": 2, "one time": 1, "a single retry": 1, "one retry": 1}[lower]
}

// period reads "minute" as "1 minute".
func period(text string) string {
	if strings.ContainsAny(text, " 0123456789") {
		return text
	}
	return "1 " + text
}

// delays reads "1 minute, 5 and 15 minutes". A bare number has the unit behind it, which must be that before it too.
func (d *draft) delays(slots []string) {
	list := strings.ToLower(slots[0])
	texts := []string{list}
	if _, err := words.ParseDuration(list); err != nil || !strings.ContainsAny(list, "dhmsw") {
		texts = betweenDelays().Split(list, -1)
	}
	unit, shared := "", false
	for i, text := range slices.Backward(texts) {
		number := strings.TrimRight(strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz"), " ")
		switch own := text[len(number):]; {
		case own == "" && unit == "", own == "" && wholeDelay.MatchString(list), own != "" && shared && strings.TrimSuffix(own, "s") != strings.TrimSuffix(unit, "s"):
			d.refuse("a unit for each delay", d.found())
		case own == "":
			texts[i] += unit
			shared = true
		default:
			unit, shared = own, false
		}
	}
	for _, text := range texts {
		d.list = append(d.list, d.duration("retries", text))
	}
}

var wholeDelay = regexp.MustCompile(`\b(?:after|then)\b`)

var betweenDelays = lazy(`<next>`)
