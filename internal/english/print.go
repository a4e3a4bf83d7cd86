package english

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/schedule"
)

// Print renders a canonical policy (as policy.Policy marshals it, decoded again) in English, one sentence per line. What
// policy.Parse makes of it when Parse has read it is the same policy, to the letter, whatever its texts hold. What
// policy.Parse adds by itself (the alignment, the end of the retries) is not said. Retries beyond the twentieth share lines.
//
// A document that is not canonical prints too, but what has no meaning there has no sentence.
func Print(policy map[string]any) string {
	p := &printer{doc: policy}
	p.schedule()
	p.time()
	p.retries()
	p.joining()
	p.errors()
	p.end()
	if p.out.Len() == 0 {
		return "- Use the defaults\n"
	}
	return p.out.String()
}

type printer struct {
	doc map[string]any
	out strings.Builder
}

func (p *printer) say(format string, parts ...any) {
	fmt.Fprintf(&p.out, "- "+format+"\n", parts...)
}

// field says one sentence about a text of the document, if it is there; render prepares the text.
func (p *printer) field(name, format string, render func(string) string) {
	if text := text(p.doc[name]); text != "" {
		p.say(format, render(text))
	}
}

// choice says the sentence for the value of a field.
func (p *printer) choice(name string, sentences map[string]string) {
	if sentence := sentences[text(p.doc[name])]; sentence != "" {
		p.say("%s", sentence)
	}
}

func (p *printer) schedule() {
	p.field("name", "This policy is called %s", strconv.Quote)
	zone := text(p.doc["timezone"])
	if rule := text(p.doc["rrule"]); rule != "" {
		p.rule(rule, zone)
	} else {
		p.field("timezone", "Use the time zone %s", bareZone)
	}
	p.field("dtstart", "Start the schedule at %s", bareRule)
}

// rule says a schedule in plain words if they mean exactly the same, else by its rule.
func (p *printer) rule(rule, zone string) {
	if zone != "" {
		zone = " in the time zone " + bareZone(zone)
	}
	if phrase, ok := schedule.RuleEnglish(rule); ok {
		p.say("Refresh the model %s%s", phrase, zone)
		return
	}
	lines := strings.Split(rule, "\n")
	p.say("Refresh the model by the rule %s%s", bareRule(lines[0]), zone)
	for _, line := range lines[1:] {
		p.say("Refresh also by the rule %s", bareRule(line))
	}
}

func (p *printer) time() {
	if text(p.doc["timeout"]) == "none" {
		p.say("Allow any time to complete")
	} else {
		p.field("timeout", "Allow %s to complete", formatDuration)
	}
	p.field("queue_timeout", "Allow %s in the queue", formatDuration)
	p.field("spread", "Spread the refreshes over %s", formatDuration)
	if age, younger := strings.CutPrefix(text(p.doc["misfire"]), "run_if_younger_than "); younger {
		p.say("Run a missed refresh once if it is younger than %s", formatDuration(age))
	}
	p.choice("misfire", map[string]string{"run_once": "Run a missed refresh once", "skip": "Skip missed refreshes"})
}

// retries says when retries happen.
func (p *printer) retries() {
	switch retries := p.doc["retries"].(type) {
	case []any:
		p.delays(retries)
	case string:
		p.say("Retry by the pattern %s", strconv.Quote(retries))
	case map[string]any:
		p.strategy(retries)
	}
	if jitter := decimal(p.doc["jitter"]); jitter != "" {
		p.say("Vary the delays by %s percent", percent(jitter))
	}
}

// sharedLine is how many sentences about late failures stand on one line.
const sharedLine = 10

func (p *printer) delays(delays []any) {
	var shared []string
	for i, delay := range delays {
		shared = append(shared, "On the "+formatOrdinal(i+1)+" failure, "+action(text(delay)))
		if i < len(firsts) || len(shared) == sharedLine || i == len(delays)-1 {
			p.say("%s", strings.Join(shared, ". "))
			shared = nil
		}
	}
}

// action is what follows a failure with a delay.
func action(delay string) string {
	switch duration := formatDuration(delay); {
	case delay == nextDelay:
		return "wait until the next scheduled refresh"
	case delay == neverDelay:
		return "never retry"
	case duration == "0 seconds":
		return "retry immediately"
	default:
		return "retry after " + duration
	}
}

func (p *printer) strategy(retries map[string]any) {
	if expression, is := retries["expr"]; is {
		p.say("Retry by the expression %s", strconv.Quote(text(expression)))
		return
	}
	if rows, is := retries["by_age"].([]any); is {
		for _, row := range rows {
			fields, _ := row.(map[string]any)
			p.say("Up to an age of %s, %s", formatDuration(text(fields["up_to"])), action(text(fields["delay"])))
		}
		return
	}
	times := ""
	if count := decimal(retries["count"]); count != "" {
		times = "up to " + count + " times "
	}
	sentence := "Retry " + times + "with " + text(retries["strategy"]) + " delays"
	for _, part := range [][2]string{{" from ", formatted(retries["base"])}, {", factor ", decimal(retries["factor"])}, {", at most ", formatted(retries["cap"])}} {
		if part[1] != "" {
			sentence += part[0] + part[1]
		}
	}
	p.say("%s", sentence)
}

func formatted(duration any) string {
	if text(duration) == "" {
		return ""
	}
	return formatDuration(text(duration))
}

// joining says how retries and the schedule go together.
func (p *printer) joining() {
	// align_planned is the default.
	p.choice("alignment", map[string]string{
		"until_success":   "Retry until success, whatever is scheduled",
		"planned_only":    "Retry only at scheduled refreshes",
		"whichever_first": "Retry or refresh as scheduled, whichever comes first",
		"between_planned": "Begin a new cycle of retries at each scheduled refresh",
	})
	p.field("retry_window", "Retry only within the window %s", bareRule)
}

// errors says what the kind of an error changes.
func (p *printer) errors() {
	p.names("retry_on", "Retry only on")
	p.names("never_retry", "Never retry on")
	delays, _ := p.doc["delays_by_error"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(delays)) {
		p.say("On %s errors, %s", bareName(name), action(text(delays[name])))
	}
}

func (p *printer) names(field, sentence string) {
	list, found := p.doc[field].([]any)
	if !found {
		return
	}
	if len(list) == 0 {
		p.say("%s no error", sentence)
		return
	}
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = bareName(text(name))
	}
	joined := strings.Join(names[:len(names)-1], ", ")
	if joined != "" {
		joined += " and "
	}
	p.say("%s %s%s", sentence, joined, names[len(names)-1])
}

// end says what follows the last retry, and who is told.
func (p *printer) end() {
	p.exhausted()
	p.field("give_up_after", "Give up after %s of unsuccessful attempts", formatDuration)
	p.field("disabled_reason", "Give the reason %s", strconv.Quote)
	if list, found := p.doc["notify"].([]any); found && len(list) == 0 {
		p.say("Notify nobody")
	} else if found {
		var told []string
		for _, notice := range list {
			told = append(told, map[string]string{"disabled": "is disabled", "recovered": "has recovered"}[text(notice)])
		}
		p.say("Notify the owner when refresh %s", strings.Join(told, " or "))
	}
}

// exhausted says what follows the last retry, if that is not the default: to give up after retries, and else to go on.
func (p *printer) exhausted() {
	list, isList := p.doc["retries"].([]any)
	never := p.doc["retries"] == nil || isList && len(list) == 0
	switch end := text(p.doc["on_exhausted"]); {
	case never && end == giveUp:
		p.say("On the first failure, give up")
	case !never && end == nextPlanned:
		p.say("After the final unsuccessful retry, wait until the next scheduled refresh")
	}
}

// text returns a text of the document; anything else is "".
func text(value any) string {
	text, _ := value.(string)
	return text
}

// decimal renders a number without an exponent; anything else is "".
func decimal(value any) string {
	switch n := value.(type) {
	case float64:
		return strconv.FormatFloat(n, 'f', -1, 64)
	case int:
		return strconv.Itoa(n)
	case json.Number:
		return n.String()
	default:
		return ""
	}
}

// percent moves the point of a decimal two places to the right, without rounding.
func percent(decimal string) string {
	whole, fraction, _ := strings.Cut(decimal, ".")
	for len(fraction) < 2 {
		fraction += "0"
	}
	shifted := strings.TrimLeft(whole+fraction[:2], "0")
	if shifted == "" {
		shifted = "0"
	}
	if fraction[2:] != "" {
		shifted += "." + fraction[2:]
	}
	return shifted
}

var (
	safeZone = regexp.MustCompile(`^[A-Za-z](?:[\w+/-]*\w)?$`)
	safeRule = regexp.MustCompile(`^\w(?:[\w=;,:+/-]*\w)?$`)
	safeName = regexp.MustCompile(`^[A-Za-z_](?:[\w.:/-]*\w)?$`)
)

func bareZone(text string) string { return bare(safeZone, text) }

func bareRule(text string) string { return bare(safeRule, text) }

func bareName(text string) string {
	if isReserved(text) {
		return strconv.Quote(text)
	}
	return bare(safeName, text)
}

// bare puts a text in quotes unless it is safe without.
func bare(safe *regexp.Regexp, text string) string {
	if safe.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
