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
	said  *sentence // the first of them
	field string    // that the delay belongs to
	then  []string  // what follows, in the words of follow
}

// anError is the number of an error type among those of the failures.
const anError = -1

// resolve returns the delay that follows failure k, or else what follows if it is the last.
func (o outcome) resolve(k int) (delay, final string, err error) {
	want := "a retry, a wait for the next scheduled refresh, or giving up after the " + words.FormatOrdinal(k) + " failure"
	then := slices.Compact(slices.Sorted(slices.Values(o.then)))
	switch {
	case len(then) == 0, len(then) == 1 && then[0] == nextPlanned:
		return "", "", refuse(o.said.line, want, "nothing of that")
	case slices.Equal(then, []string{nextDelay, nextPlanned}):
		return "", nextPlanned, nil
	case len(then) > 1 || len(o.then) > 1 && then[0] != giveUp:
		return "", "", refuse(o.said.line, "only one of "+want, "more than one")
	case then[0] == giveUp:
		return "", giveUp, nil
	default:
		return then[0], "", nil
	}
}

// retries turns the sentences about each failure into a list of delays and what follows it: the failure after N delays is number N+1.
func (d *draft) retries() {
	switch line := d.lines["retries"]; {
	case d.each && d.lines["retries.count"] == 0 && d.lines["on_exhausted"] > 0:
		d.fail(refuse(line, `how many retries there are, such as "Retry once after 5 minutes", as line `+strconv.Itoa(d.lines["on_exhausted"])+" says what follows the last", "nothing of that"))
	case d.parts["strategy"] != nil || d.parts["base"] != nil && d.lines["retries.count"] > 0:
		d.parts["strategy"] = cmp.Or(d.parts["strategy"], any("fixed"))
		d.doc["retries"] = d.parts
	case d.parts["base"] != nil:
		d.fail(refuse(line, `how many retries there are, such as "Retry up to 3 times"`, "nothing of that"))
	}
	d.listFailures()
	count, counted := d.parts["count"].(float64)
	listed, known := d.countOfRetries()
	if line := d.lines["retries.count"]; line > 0 && (!known || !counted || listed != int(count)) && (counted || d.parts["strategy"] == nil) {
		d.fail(refuse(line, `as many delays as retries, such as "Retry up to 3 times, 5 minutes apart"`, words.Count(listed, "delay", "delays")))
	}
}

// listFailures reads the failures in their order. Beside another sentence about retries there is only the one after the last retry.
func (d *draft) listFailures() {
	before, counted := d.countOfRetries()
	line := d.lines["retries"]
	var delays []any
	order := slices.Sorted(maps.Keys(d.failures))
	for i, k := range order {
		o := d.failures[k]
		delay, final, err := o.resolve(k)
		d.fail(err)
		d.now = o.said
		next := before + i + 1
		switch {
		case line > 0 && final == "":
			d.once("retries", line)
		case line > 0 && !counted:
			d.refuse("no number of a failure, because line "+strconv.Itoa(line)+" does not say how many retries there are", d.found())
		case k != next:
			d.refuse("the "+words.FormatOrdinal(next)+" failure, because the failure after the last retry has the next number", "the "+words.FormatOrdinal(k))
		case final == "":
			d.lines[element("retries", i)] = o.said.line
			delays = append(delays, delay)
		case i < len(order)-1:
			d.fail(refuse(d.failures[order[i+1]].said.line, "nothing after the "+words.FormatOrdinal(k)+" failure, which line "+strconv.Itoa(o.said.line)+" makes the last", "the "+words.FormatOrdinal(order[i+1])))
		default:
			if d.exhausted(final); next == 1 && line == 0 {
				d.set("retries", []any{})
			}
		}
	}
	if len(delays) > 0 {
		d.doc["retries"], d.lines["retries"] = delays, d.lines["retries[0]"]
	}
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

// knownErrors are the error types of refreshd and its workers. Others look like identifiers or are in quotes.
var knownErrors = strings.Fields("permanent timeout silent network truncated stalled too_slow too_large disk input_url forbidden_address exec_start suspect")

var (
	identifier  = regexp.MustCompile(`^[A-Za-z][\w.:/-]*\w$`)
	compound    = regexp.MustCompile(`[a-z][A-Z]|\w_\w|\w(?:\.|::)\w|.(?:Error|Exception)$`) // of several words, as none in a sentence is
	statusClass = regexp.MustCompile(`(?i)^(?:http_)?\dxx$`)
	inError     = regexp.MustCompile(`(?i)^(?:an?y? |all )?(?:http |status )?(.+?)(?: (?:errors?|status|responses?))?$`)
	betweenAll  = regexp.MustCompile(`(?i)(?:, and |, or |, | and | or )(?:(?:on|after|the) )?`)
)

// errorTypes reads a list of error types; classes: also classes of statuses, such as http_5xx.
func (d *draft) errorTypes(text string, classes bool) (types []any) {
	for _, part := range betweenAll.Split(text, -1) {
		name := inError.FindStringSubmatch(part)[1]
		lower := strings.ToLower(name)
		singular := strings.TrimSuffix(lower, "s")
		switch {
		case strings.Trim(singular, "0123456789") == "": // "404s"
			name = "http_" + singular
		case singular == "failure":
			d.fail(errNotKnown)
		case name[0] == '"':
			name = d.now.value(name)
		case singular == policy.ReasonTimeout:
			name = policy.ReasonTimeout
		case slices.Contains(knownErrors, lower):
			name = lower
		case slices.Contains(d.now.ticked, name), isIdentifier(name), classes && statusClass.MatchString(name):
		default:
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

var (
	afterTime  = regexp.MustCompile(`(?i)^after `)
	neverAgain = regexp.MustCompile(`(?i)^(?:never retry|give up(?: immediately| at once)?)$`)
)

func (d *draft) onError(slots []string) {
	for _, name := range d.errorTypes(slots[0], false) {
		field, delay := "delays_by_error."+name.(string), neverRetry
		if !neverAgain.MatchString(slots[1]) {
			delay = d.delay(field, afterTime.ReplaceAllString(slots[1], "retry $0"))
		}
		d.put("delays_by_error", name.(string), delay)
		d.errorLine = d.now.line
	}
}

// delay reads an action that can be nothing but a delay: a retry, or a wait for the next scheduled refresh.
func (d *draft) delay(field, action string) string {
	d.at = anError
	d.failures[anError] = outcome{said: d.now, field: field}
	known := d.act(action)
	delay, _, _ := d.failures[anError].resolve(1)
	delete(d.failures, anError)
	d.closeBlock()
	d.mustKnow(known && delay != "")
	return delay
}

// onFailure reads "second", "first and second", "first three" or "2", followed by an action.
func (d *draft) onFailure(slots []string) {
	for _, k := range d.ordinals(slots[0]) {
		d.atFailure(k)
		d.mustKnow(d.act(slots[1]))
	}
	d.openBlock()
}

// ordinals reads "second", "first and second", "first three", "next two" and "2".
func (d *draft) ordinals(text string) (numbers []int) {
	which, count, _ := strings.Cut(strings.ToLower(text), " ")
	from := 0
	if which == "next" {
		from = len(d.failures)
	}
	for k := range min(countOf(count), 1000) {
		numbers = append(numbers, from+k+1)
	}
	if n := countOf(text); n > 0 {
		return []int{n}
	} else if numbers != nil {
		return numbers
	}
	for _, ordinal := range betweenAll.Split(text, -1) {
		k, known := words.Ordinal(ordinal)
		d.mustKnow(known)
		numbers = append(numbers, k)
	}
	return numbers
}

func (d *draft) atFailure(k int) {
	if before, found := d.failures[k]; found {
		d.once("the "+words.FormatOrdinal(k)+" failure", before.said.line)
	}
	d.refuseIf(d.ended > 0, "no failure after line "+strconv.Itoa(d.ended)+", which says what follows the last one", d.found())
	d.at = k
	d.failures[k] = outcome{said: d.now, field: element("retries", k-1)}
}
