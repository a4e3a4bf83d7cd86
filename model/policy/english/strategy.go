package english

import (
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/words"
)

// traits are what a sentence may say of its retries, in any order: "up to 5 times, 5 minutes apart". The first that fits is taken.
var traits = []form{
	{patterns: `<up to><count> (?:times?|retries) / (?:at most )?(once|twice)`, apply: func(d *draft, slots []string) { d.part("count", float64(countOf(slots[0]))) }},
	{patterns: `forever`, apply: func(d *draft, _ []string) { d.setInner("retries.count", "retries.count") }},
	{patterns: `every <period> / <duration> apart / with <duration> between (?:attempts|retries) / with a (?:fixed )?delay of <duration>`,
		apply: func(d *draft, slots []string) {
			d.part("strategy", "fixed")
			d.part("base", d.duration("retries.base", period(slots[0])))
		}},
	{patterns: `(?:with )?(fixed|linear|exponential|fibonacci) (?:delays|backoff)`, apply: func(d *draft, slots []string) { d.part("strategy", strings.ToLower(slots[0])) }},
	{patterns: `doubling the delay(?: each time)?`, apply: func(d *draft, _ []string) { d.part("strategy", "exponential") }},
	{patterns: `(?:of|from|starting (?:at|with|from|after)) <duration>`, apply: setPart("base")},
	{patterns: `(?:by the )?factor <number>`, apply: func(d *draft, slots []string) {
		n, err := strconv.ParseFloat(slots[0], 64)
		if err != nil {
			d.refuse("a number that a float64 can hold", d.found())
		}
		d.part("factor", n)
	}},
	{patterns: `(?:at most|up to|to|capped at) <duration>`, apply: setPart("cap")},
	{patterns: `(?:with )?<percent>(?: of)? jitter`, apply: (*draft).vary},
	{patterns: `(?:immediately|right away|at once)`, apply: func(d *draft, _ []string) { d.delays([]string{"0"}) }},
	{patterns: `after <duration>`, apply: (*draft).delays},
}

// aRate matches what is no number of retries, but one in a time.
var aRate = regexp.MustCompile(`(?i)(?:times?|once|twice) (?:an?|each|every|per) (?:second|minute|hour|day|week)\b`)

// strategy reads what a sentence says of its retries, trait by trait, to its end.
func (d *draft) strategy(slots []string) {
	before := maps.Clone(d.parts)
	d.list = nil
	for rest := slots[0]; rest != "" && d.err == nil; {
		form, slots := match(traitGrammar(), rest)
		if form == nil || aRate.MatchString(rest) {
			d.fail(errNotKnown)
			return
		}
		last := len(slots) - 1
		form.apply(d, slots[:last])
		rest = slots[last]
	}
	said := func(part string) bool { return before[part] == nil && d.parts[part] != nil }
	grows, based := said("strategy"), said("base")
	switch {
	case len(d.list) == 0 && (grows || !based && !said("cap") && !said("factor")):
	case len(d.list) == 1 && grows && !based:
		d.part("base", d.list[0])
	case grows, based, len(d.list) == 0, len(d.list) == 1 && !said("count"):
		d.fail(errNotKnown)
	default:
		d.set("retries", d.list)
	}
}

func (d *draft) part(name string, value any) {
	field := "retries"
	if name == "count" {
		field = "retries.count"
	} else if d.doc["retries"] != nil {
		d.twice("retries", d.now.line, d.now.original())
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
	return map[string]int{"once": 1, "twice": 2}[lower]
}

// period reads "minute" as "1 minute".
func period(text string) string {
	if strings.ContainsAny(text, " 0123456789") {
		return text
	}
	return "1 " + text
}

// delays reads one delay, or several: "1 minute, 5 minutes and 1 hour".
func (d *draft) delays(slots []string) {
	texts := []string{slots[0]}
	if _, err := words.ParseDuration(slots[0]); err != nil {
		texts = betweenAll.Split(slots[0], -1)
	}
	for _, text := range texts {
		d.list = append(d.list, d.duration("retries", text))
	}
}
