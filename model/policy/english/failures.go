package english

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

type outcome struct {
	line  int    // of the first of them
	field string // that the delay belongs to
	said  string // that one
	delay string // of a retry; empty: none
	wait  bool
	reset bool
	final bool
}

// resolve returns what follows failure k if it is the last, else "" with the delay in o.
func (o *outcome) resolve(k int) (final string, err error) {
	want := "a retry, a wait for the next scheduled refresh, or giving up after the " + words.FormatOrdinal(k) + " failure"
	type told struct{ retry, wait, reset, final bool }
	switch (told{o.delay != "", o.wait, o.reset, o.final}) {
	case told{wait: true, reset: true}:
		return nextPlanned, nil
	case told{final: true}:
		return giveUp, nil
	case told{wait: true}:
		o.delay = nextDelay
		return "", nil
	case told{retry: true}:
		return "", nil
	case told{}, told{reset: true}:
		return "", refuse(o.line, want, "nothing of that")
	default:
		return "", refuse(o.line, "only one of "+want, "more than one")
	}
}

// retries turns what the sentences say of each failure into a list of delays and what follows it: the failure after N delays is number N+1.
func (d *draft) retries() {
	switch {
	case d.each && d.lines["retries.count"] == 0 && d.lines["on_exhausted"] > 0:
		d.fail(refuse(d.lines["retries"], `how many retries there are, such as "Retry once after 5 minutes", as line `+number(d.lines["on_exhausted"])+" says what follows the last", "nothing of that"))
	case d.parts["base"] == nil && d.parts["strategy"] == nil:
	case d.parts["strategy"] == nil && d.lines["retries.count"] == 0:
		d.fail(refuse(d.lines["retries"], `how many retries there are, such as "Retry up to 3 times"`, "nothing of that"))
	default:
		d.parts["strategy"] = cmp.Or(d.parts["strategy"], any("fixed"))
		d.doc["retries"] = d.parts
	}
	switch order := slices.Sorted(maps.Keys(d.failures)); {
	case len(order) == 0:
	case d.lines["retries"] > 0:
		d.lastOfStrategy(order)
	default:
		d.listFailures(order)
	}
	count, counted := d.parts["count"].(float64)
	listed, known := d.countOfRetries()
	if line := d.lines["retries.count"]; line > 0 && (!known || !counted || listed != int(count)) && (counted || d.parts["strategy"] == nil) {
		d.fail(refuse(line, `as many delays as retries, such as "Retry up to 3 times, 5 minutes apart"`, words.Count(listed, "delay", "delays")))
	}
}

func (d *draft) listFailures(order []int) {
	var delays []any
	for i, k := range order {
		if k != i+1 {
			expected := "the " + words.FormatOrdinal(i+1) + " failure"
			if i > 0 {
				expected += " after the " + words.FormatOrdinal(i) + " in line " + number(d.failures[i].line)
			}
			d.fail(refuse(d.failures[k].line, expected+", because the failure after the last retry has the next number", "the "+words.FormatOrdinal(k)))
			return
		}
		o := d.failures[k]
		final, err := o.resolve(k)
		d.fail(err)
		switch {
		case final == "":
			d.lines[element("retries", i)] = o.line
			delays = append(delays, o.delay)
		case i < len(order)-1:
			next := order[i+1]
			d.fail(refuse(d.failures[next].line, "nothing after the "+words.FormatOrdinal(k)+" failure, which line "+number(o.line)+" makes the last",
				"the "+words.FormatOrdinal(next)))
			return
		default:
			d.now = &sentence{line: o.line, text: o.said}
			if len(delays) == 0 { // the first failure is the last
				d.set("retries", []any{}) // which a sentence may have said already
			}
			d.exhausted(final)
		}
	}
	if len(delays) > 0 {
		d.doc["retries"], d.lines["retries"] = delays, d.lines["retries[0]"]
	}
}

// lastOfStrategy accepts one failure beside a strategy: the one after its last retry.
func (d *draft) lastOfStrategy(order []int) {
	k, line := order[0], number(d.lines["retries"])
	o := d.failures[k]
	final, err := o.resolve(k)
	d.fail(err)
	count, counted := d.countOfRetries()
	switch {
	case final == "":
		d.twice("retries", o.line, o.said)
	case !counted:
		d.fail(refuse(o.line, "no number of a failure, because line "+line+" does not say how many retries there are", document.Found(o.said)))
	case k != count+1:
		d.fail(refuse(o.line, "the "+words.FormatOrdinal(count+1)+" failure, the one after the last retry of line "+line, "the "+words.FormatOrdinal(k)))
	case len(order) > 1:
		d.fail(refuse(d.failures[order[1]].line, "nothing after the "+words.FormatOrdinal(k)+" failure", "the "+words.FormatOrdinal(order[1])))
	}
	d.now = &sentence{line: o.line, text: o.said}
	d.exhausted(final)
}

// countOfRetries returns how many retries a sentence other than "On the first failure, ..." allows; false: it does not say.
func (d *draft) countOfRetries() (int, bool) {
	switch retries := d.doc["retries"].(type) {
	case []any:
		return len(retries), true
	case map[string]any:
		count, counted := retries["count"].(float64)
		return int(count), counted
	default:
		return 0, false
	}
}

// knownErrors are the error types of refreshd and its workers. Others look like identifiers or stand in quotes.
var knownErrors = strings.Fields("permanent timeout silent network truncated stalled too_slow too_large disk input_url forbidden_address exec_start suspect")

var (
	identifier  = regexp.MustCompile(`^[A-Za-z][\w.:/-]*\w$`)
	compound    = regexp.MustCompile(`[a-z][A-Z]|\w_\w|\w(?:\.|::)\w|.(?:Error|Exception)$`) // of several words, as none in a sentence is
	statusClass = regexp.MustCompile(`(?i)^(?:http_)?\dxx$`)
	inError     = regexp.MustCompile(`(?i)^(?:an? )?(?:http )?(.+?)(?: errors?)?$`)
	betweenAll  = regexp.MustCompile(`(?i)(?:, and |, or |, | and | or )(?:(?:on|after) )?`)
)

// errorTypes reads a list of error types; classes: also classes of statuses, such as http_5xx.
func (d *draft) errorTypes(text string, classes bool) (types []any) {
	for _, part := range betweenAll.Split(text, -1) {
		name := inError.FindStringSubmatch(part)[1]
		lower, known := strings.ToLower(name), true
		if digits := strings.TrimSuffix(lower, "s"); strings.Trim(digits, "0123456789") == "" { // "404s"
			name = digits
		}
		switch {
		case strings.Trim(name, "0123456789") == "":
			name = "http_" + name
		case lower == "failure" || lower == "failures":
			d.fail(errNotKnown)
		case name[0] == '"':
			name = d.now.value(name)
		case lower == policy.ReasonTimeout+"s":
			name = policy.ReasonTimeout
		case slices.Contains(knownErrors, lower):
			name = lower
		default:
			known = slices.Contains(d.now.ticked, name) || isIdentifier(name) || classes && statusClass.MatchString(name)
		}
		if !known {
			d.refuse(`an error type: a known one such as timeout, one in the form of ValidationError or http_503, or one in quotes`, document.Found(part))
		}
		types = append(types, name)
	}
	return types
}

func isIdentifier(word string) bool {
	return identifier.MatchString(word) && compound.MatchString(word) && !slices.Contains(words.Nouns, strings.ToLower(word)) && !statusClass.MatchString(word)
}

func setErrors(field string) func(*draft, []string) {
	return func(d *draft, slots []string) { d.set(field, d.errorTypes(slots[0], false)) }
}

var neverAgain = regexp.MustCompile(`(?i)^(?:(?:never|do not) retry|give up(?: immediately| at once)?)$`)

func (d *draft) onError(slots []string) {
	types := d.errorTypes(slots[0], false)
	delays, _ := d.doc["delays_by_error"].(map[string]any)
	if delays = maps.Clone(delays); delays == nil {
		delays = make(map[string]any)
	}
	d.doc["delays_by_error"] = delays
	for _, name := range types {
		field, delay := "delays_by_error."+name.(string), neverRetry
		if !neverAgain.MatchString(slots[1]) {
			delay = d.delay(field, slots[1])
		}
		delays[name.(string)] = delay
		d.setInner("delays_by_error", field)
	}
}

// traits are what a sentence may say of its retries, in any order: "up to 5 times, 5 minutes apart". The first that fits is taken.
var traits = []form{
	{patterns: `once every <period>`, apply: everyPause},
	{patterns: `(?:with )?<up to><count> (?:times?|retries|more times?) / (?:at most |up to )?(once|twice)`, apply: func(d *draft, slots []string) { d.part("count", float64(countOf(slots[0]))) }},
	{patterns: `(?:forever|indefinitely|endlessly|without (?:a )?limit)`, apply: func(d *draft, _ []string) { d.setInner("retries.count", "retries.count") }},
	{patterns: `every <period> / <duration> apart / with <duration> (?:in )?between<tries> / with (?:a|an) (?:fixed )?<pause> of <duration><between> /
		with an? (?:fixed )?<length> <pause><between> / at <length> intervals / at intervals of <duration> / wait(?:ing)? <duration> (?:each time|between<tries>|before each (?:retry|attempt)) /
		after <duration> each(?: time)? / each time after <duration>`,
		apply: everyPause},
	{patterns: `(?:with )?(fixed|linear|exponential|fibonacci) (?:delays|backoff)`, apply: func(d *draft, slots []string) { d.part("strategy", strings.ToLower(slots[0])) }},
	{patterns: `doubl(?:e|ing) (?:(?:the|each) <pause>(?: (?:each time|after each (?:retry|failure|attempt)))?|each time)`, apply: func(d *draft, _ []string) { d.part("strategy", "exponential") }},
	{patterns: `(?:of|from|(?:starting|beginning) (?:at|with|from|after)|with (?:a base|an initial delay) of) <duration>`, apply: setPart("base")},
	{patterns: `(?:by the )?factor <number>`, apply: func(d *draft, slots []string) {
		n, err := strconv.ParseFloat(slots[0], 64)
		if err != nil {
			d.refuse("a number that a float64 can hold", d.found())
		}
		d.part("factor", n)
	}},
	{patterns: `(?:with |up to )?a (?:maximum|cap|limit) of <duration> / (?:at most|up to|to|capped at|(?:never|no) (?:more|longer) than|max(?:imum)?) <duration>`, apply: setPart("cap")},
	{patterns: `(?:with )?<percent>(?: of)? jitter`, apply: (*draft).vary},
	{patterns: `(?:immediately|right away|at once)`, apply: func(d *draft, _ []string) { d.delays([]string{"0"}) }},
	{patterns: `(?:after|in) <delays>`, apply: (*draft).delays},
}

func everyPause(d *draft, slots []string) {
	d.part("strategy", "fixed")
	d.part("base", d.duration("retries.base", period(strings.ReplaceAll(slots[0], "-", " "))))
}

// aRate matches what is no number of retries, but one in a time.
var aRate = regexp.MustCompile(`(?i)(?:times?|once|twice) (?:an?|each|every|per) (?:second|minute|hour|day|week)\b`)

// inAll matches a time for all retries: "up to 5 times in 10 minutes".
var inAll = regexp.MustCompile(`(?i)(?:times|retries|twice),? in \d`)

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
	case said("cap") && d.parts["strategy"] == "fixed" && !strings.Contains(strings.ToLower(slots[0]), "fixed"): // "every 5 minutes, up to 1 hour"
		d.fail(errNotKnown)
	case len(d.list) == 0 && (grows || !based && !said("cap") && !said("factor")):
	case len(d.list) == 1 && !based && !inAll.MatchString(slots[0]) && d.list[0] != "0s" && (grows || said("count") && d.parts["count"].(float64) > 1): // "after 5 minutes, up to 3 times"
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

// delays reads "1 minute, 5 and 15 minutes". A bare number has the unit behind it, which must be that before it too.
func (d *draft) delays(slots []string) {
	list := strings.ToLower(slots[0])
	texts := []string{list}
	if _, err := words.ParseDuration(list); err != nil || !strings.ContainsAny(list, "dhmsw") {
		texts = betweenDelays.Split(list, -1)
	}
	unit, last, joined := "", "", strings.Contains(list, "after") || strings.Contains(list, "then")
	for i := len(texts) - 1; i >= 0; i-- {
		if _, bare := words.Digits(texts[i]); bare && texts[i] != "0" {
			if last = unit; unit == "" || joined {
				d.refuse("a unit for each delay", d.found())
			}
			texts[i] += unit
			continue
		}
		number := strings.TrimRight(texts[i], "abcdefghijklmnopqrstuvwxyz")
		if unit = texts[i][len(strings.TrimRight(number, " ")):]; last != "" && strings.TrimSuffix(last, "s") != strings.TrimSuffix(unit, "s") {
			d.refuse("a unit for each delay", d.found())
		}
		last = ""
	}
	for _, text := range texts {
		d.list = append(d.list, d.duration("retries", text))
	}
}

var betweenDelays = regexp.MustCompile(`(?:,? and then |,? then |, and |, | and (?:again )?)(?:(?:after|in) )?`)
