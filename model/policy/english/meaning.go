package english

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// What the forms of sentences.go mean. Each function takes what the slots of its form hold.

func sayNothing(*draft, []string) error { return nil }

func set(field string, value any) func(*draft, []string) error {
	return func(d *draft, _ []string) error { return d.set(field, value) }
}

func setExhausted(what string) func(*draft, []string) error {
	return func(d *draft, _ []string) error { return d.exhausted(what) }
}

func setValue(field string) func(*draft, []string) error {
	return func(d *draft, slots []string) error { return d.set(field, d.now.value(slots[0])) }
}

func setDuration(field string) func(*draft, []string) error {
	return func(d *draft, slots []string) error {
		duration, err := d.duration(field, slots[0])
		if err != nil {
			return err
		}
		return d.set(field, duration)
	}
}

// reserved are words that are no names of errors unless they stand in quotes: "On an error" would mean every one.
var reserved = strings.Fields("a all an and any each error errors every failure failures no nothing or some the")

func isReserved(name string) bool { return slices.Contains(reserved, strings.ToLower(name)) }

var betweenNames = regexp.MustCompile(`(?i), and |, or |, | and | or `)

func setNames(field string) func(*draft, []string) error {
	return func(d *draft, slots []string) error {
		names, known := d.namesIn(slots[0])
		if !known {
			return errNotKnown
		}
		return d.set(field, names)
	}
}

// namesIn reads a list of names; false: one of them is none.
func (d *draft) namesIn(text string) (names []any, known bool) {
	for _, name := range betweenNames.Split(text, -1) {
		if isReserved(name) {
			return nil, false
		}
		names = append(names, d.now.value(name))
	}
	return names, true
}

func (d *draft) giveUpAfter(slots []string) error {
	d.inWindow = true
	d.openBlock()
	return setDuration("give_up_after")(d, slots)
}

func (d *draft) misfireYounger(slots []string) error {
	age, err := d.duration("misfire", slots[0])
	if err != nil {
		return err
	}
	return d.set("misfire", "run_if_younger_than "+age)
}

// emailTo takes who gets e-mail from the slot that says it, if any. Several sentences may say the same.
func (d *draft) emailTo(slots []string) error {
	text := strings.TrimSpace(strings.Join(slots, ""))
	if text == "" {
		return nil
	}
	var to any = d.now.value(text)
	if kind, name, is := strings.Cut(strings.Trim(text, "{}"), ":"); is && text[0] == '{' {
		to = map[string]any{strings.ToLower(kind): strings.TrimSpace(name)}
	} else if words := strings.Fields(text); len(words) == 4 {
		to = map[string]any{"payload": words[0]}
	} else if len(words) == 3 {
		to = map[string]any{"label": words[2]}
	}
	if reflect.DeepEqual(d.doc["email"], to) {
		return nil
	}
	return d.set("email", to)
}

func (d *draft) notifyFailing(slots []string) error {
	k, known := words.Ordinal(slots[1])
	if !known {
		return errNotKnown
	}
	d.mail()
	if err := d.emailTo(slots[:1]); err != nil {
		return err
	}
	return d.set("failing_from", float64(k))
}

func (d *draft) notifyOwner(slots []string) error {
	if err := d.emailTo(slots[:1]); err != nil {
		return err
	}
	words := map[policy.Notice]string{
		policy.NoticeDisabled: "disabled", policy.NoticeRecovered: "recover", policy.NoticeStale: "stale", policy.NoticeFresh: "fresh again",
	}
	for _, notice := range policy.Notices {
		if strings.Contains(strings.ToLower(slots[1]), words[notice]) {
			if err := d.notify(notice); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *draft) notifyAll([]string) error {
	for _, notice := range policy.Notices {
		if err := d.notify(notice); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) strategy(slots []string) error {
	strategy := map[string]any{"strategy": strings.ToLower(slots[1])}
	for i, field := range map[int]string{0: "count", 3: "factor"} {
		if slots[i] != "" {
			n, err := strconv.ParseFloat(slots[i], 64)
			if err != nil {
				return d.refuse("a number that a float64 can hold", d.found())
			}
			strategy[field] = n
		}
	}
	for i, field := range map[int]string{2: "base", 4: "cap"} {
		if slots[i] == "" {
			continue
		}
		duration, err := d.duration("retries."+field, slots[i])
		if err != nil {
			return err
		}
		strategy[field] = duration
	}
	return d.set("retries", strategy)
}

func (d *draft) expression(slots []string) error {
	return d.set("retries", map[string]any{"expr": d.now.value(slots[0])})
}

func (d *draft) aligner(slots []string) error {
	return d.set("alignment", map[string]any{"expr": d.now.value(slots[0])})
}

// vary reads a percentage. The exponent keeps it exact: 7 / 100 would not be the nearest to 0.07 for all numbers.
func (d *draft) vary(slots []string) error {
	share, err := strconv.ParseFloat(slots[0]+"e-2", 64)
	if err != nil {
		return d.refuse("a percentage from 0 to 100", d.found())
	}
	return d.set("jitter", share)
}

func (d *draft) window(slots []string) error { return d.set("retry_window", d.now.restore(slots[0])) }

// upToAge reads one row of the table of delays by age; several make the table.
func (d *draft) upToAge(slots []string) error {
	table, _ := d.doc["retries"].(map[string]any)
	rows, isTable := table["by_age"].([]any)
	field := element("retries.by_age", len(rows))
	age, err := d.duration(field+".up_to", slots[0])
	if err != nil {
		return err
	}
	delay, err := d.delay(field+".delay", slots[1])
	if err != nil {
		return err
	}
	if d.lines["retries"] > 0 && !isTable {
		return d.twice("retries", d.now.line, d.now.original())
	}
	d.doc["retries"] = map[string]any{"by_age": append(rows, any(map[string]any{"up_to": age, "delay": delay}))}
	return d.setInner("retries", field)
}

// onError reads the delay after one kind of error.
func (d *draft) onError(slots []string) error {
	if isReserved(slots[0]) {
		return errNotKnown
	}
	name, delay := d.now.value(slots[0]), neverRetry
	field := "delays_by_error." + name
	if !neverAgain.MatchString(slots[1]) {
		var err error
		if delay, err = d.delay(field, slots[1]); err != nil {
			return err
		}
	}
	delays, found := d.doc["delays_by_error"].(map[string]any)
	if !found {
		delays = make(map[string]any)
		d.doc["delays_by_error"] = delays
	}
	delays[name] = delay
	return d.setInner("delays_by_error", field)
}

var neverAgain = regexp.MustCompile(`(?i)^(?:never|do not) retry$`)

// delay reads an action that can be nothing but a delay: a retry, or a wait for the next scheduled refresh.
func (d *draft) delay(field, action string) (string, error) {
	o := &outcome{line: d.now.line, field: field}
	d.at = o
	defer d.closeBlock()
	if err := d.act(action); err != nil {
		return "", err
	}
	if final, err := o.resolve(1); err != nil || final != "" {
		return "", errNotKnown
	}
	return o.delay, nil
}

// onFailure reads what follows one failure in the same sentence.
func (d *draft) onFailure(slots []string) error {
	if err := d.atFailure(slots); err != nil {
		return err
	}
	err := d.act(slots[1])
	if err == nil {
		d.openBlock()
	}
	return err
}

// atFailure lets the actions that follow be about one failure.
func (d *draft) atFailure(slots []string) error {
	k, known := words.Ordinal(slots[0])
	if !known {
		return errNotKnown
	}
	if before := d.failures[k]; before != nil {
		return d.refuse("one sentence about the "+words.FormatOrdinal(k)+" failure, which is in line "+number(before.line), "a second: "+d.found())
	}
	if d.ended > 0 {
		return d.refuse("no failure after line "+number(d.ended)+", which says what follows the last one", d.found())
	}
	d.at = &outcome{line: d.now.line, field: element("retries", k-1), said: d.now.original()}
	d.failures[k] = d.at
	if len(slots) == 1 {
		d.block = block{heading: d.now.level}
	}
	return nil
}
