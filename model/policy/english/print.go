package english

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

// Print renders a policy in English, one sentence per line. What policy.Read makes of it when Parse has read it is the same policy,
// to the letter, whatever its texts hold and whatever it is completed with. Retries beyond the twentieth share lines; so does, at the
// end, what a policy has not.
func Print(p policy.Policy) string { return printAll(&p).ended(nil) }

// PrintBeside is Print for somebody who knows another policy, which completes what is read back: of what the policy has not, it says only what the
// other one has.
func PrintBeside(p, known policy.Policy) string { return printAll(&p).ended(printAll(&known).usual) }

func printAll(p *policy.Policy) *printer {
	out := &printer{}
	for _, print := range []func(*policy.Policy){out.schedule, out.retries, out.errors, out.end, out.limits, out.guards} {
		print(p)
	}
	return out
}

// ended is the text, with the usual sentences at its end that are not known.
func (out *printer) ended(known []string) string {
	said := func(sentence string) bool { return slices.Contains(known, sentence) }
	if rest := slices.DeleteFunc(out.usual, said); len(rest) > 0 {
		out.line("%s", strings.Join(rest, ". "))
	}
	return out.String()
}

type printer struct {
	strings.Builder
	usual []string // sentences that say only that the policy lacks something usual
}

func (out *printer) line(format string, parts ...any) { fmt.Fprintf(out, "- "+format+"\n", parts...) }

// lineIf says that a policy has something, or else that it has not; the latter may be empty.
func (out *printer) lineIf(has bool, format, what, without string) {
	if has {
		out.line(format, what)
	} else {
		out.usualLine(without)
	}
}

func (out *printer) usualLine(sentence string) {
	if sentence != "" {
		out.usual = append(out.usual, sentence)
	}
}

var inWords = document.FormatDurationInWords

func (out *printer) schedule(p *policy.Policy) {
	out.lineIf(p.Name != "", "This policy is called %s", strconv.Quote(p.Name), "")
	zone := ""
	if p.Timezone != "" {
		zone = " in the time zone " + bareZone(p.Timezone)
	}
	// In plain words if they mean exactly the same, else by its rule.
	if phrase, ok := schedule.RuleEnglish(p.Rule); ok {
		out.line("Refresh the model %s%s", phrase, zone)
	} else if lines := strings.Split(p.Rule, "\n"); p.Rule != "" {
		out.line("Refresh the model by the rule %s%s", bareRule(lines[0]), zone)
		for _, line := range lines[1:] {
			out.line("Refresh also by the rule %s", bareRule(line))
		}
	} else {
		out.lineIf(zone != "", "Use the time zone %s", bareZone(p.Timezone), "")
	}
	out.lineIf(p.Dtstart != "", "Start the schedule at %s", bareRule(p.Dtstart), "")
	allowed := "any time"
	if p.Timeout > 0 {
		allowed = inWords(p.Timeout)
	}
	out.line("Allow %s to complete", allowed)
	out.lineIf(p.QueueTimeout > 0, "Allow %s in the queue", inWords(p.QueueTimeout), "Allow any time in the queue")
	out.lineIf(p.SilentAfter > 0, "Take a worker for lost when it is silent for %s", inWords(p.SilentAfter), "Take no worker for lost")
	out.lineIf(p.Spread > 0, "Spread the refreshes over %s", inWords(p.Spread), "Do not spread the refreshes")
	switch {
	case !p.Misfire.Limited:
		out.usualLine("Run a missed refresh once")
	case p.Misfire.Skips():
		out.line("Skip missed refreshes")
	default:
		out.line("Run a missed refresh once if it is younger than %s", inWords(p.Misfire.Younger))
	}
}

var alignments = map[policy.Alignment]string{
	policy.AlignPlanned:   "Skip retries that overlap with a scheduled refresh",
	policy.UntilSuccess:   "Retry until success, whatever is scheduled",
	policy.PlannedOnly:    "Retry only at scheduled refreshes",
	policy.WhicheverFirst: "Retry or refresh as scheduled, whichever comes first",
	policy.BetweenPlanned: "Begin a new cycle of retries at each scheduled refresh",
}

func (out *printer) retries(p *policy.Policy) {
	switch retries := p.Retries.(type) {
	case policy.Delays:
		var shared []string
		for i, delay := range retries {
			shared = append(shared, "On the "+words.FormatOrdinal(i+1)+" failure, "+action(delay))
			if i < len(words.Firsts) || len(shared) == sharedLine || i == len(retries)-1 {
				out.line("%s", strings.Join(shared, ". "))
				shared = nil
			}
		}
	case policy.AgeTable:
		for _, row := range retries {
			out.line("Up to an age of %s, %s", inWords(row.UpTo), action(row.Delay))
		}
	case *policy.Expression:
		out.line("Retry by the expression %s", strconv.Quote(retries.Text))
	case policy.Backoff:
		sentence := "Retry"
		if retries.Retries == 1 {
			sentence += " 1 time"
		} else if retries.Retries != policy.Unlimited {
			sentence += fmt.Sprintf(" up to %d times", retries.Retries)
		}
		sentence += " with " + string(retries.Strategy) + " delays from " + inWords(retries.Base)
		if retries.Strategy == policy.Exponential && retries.Factor != policy.DefaultFactor {
			sentence += ", factor " + decimal(retries.Factor)
		}
		if retries.Cap > 0 {
			sentence += ", at most " + inWords(retries.Cap)
		}
		out.line("%s", sentence)
	}
	if p.Jitter != p.DefaultJitter() {
		// The point of the decimal moves two places to the right, without rounding.
		whole, fraction, _ := strings.Cut(decimal(p.Jitter), ".")
		fraction += strings.Repeat("0", max(0, 2-len(fraction)))
		percent := cmp.Or(strings.TrimLeft(whole+fraction[:2], "0"), "0")
		if fraction[2:] != "" {
			percent += "." + fraction[2:]
		}
		out.line("Vary the delays by %s percent", percent)
	}
	if p.AlignBy != nil {
		out.line("Align retries by the expression %s", strconv.Quote(p.AlignBy.Text))
	} else {
		out.line("%s", alignments[p.Alignment])
	}
	out.lineIf(p.RetryWindow != "", "Let retries wait for the window %s", bareRule(p.RetryWindow), "Retry at any time")
}

const sharedLine = 10

func action(delay time.Duration) string {
	switch delay {
	case policy.UntilPlanned:
		return "wait until the next scheduled refresh"
	case policy.NeverRetry:
		return "never retry"
	case 0:
		return "retry immediately"
	default:
		return "retry after " + inWords(delay)
	}
}

func (out *printer) errors(p *policy.Policy) {
	out.lineIf(p.Classes.RetryOn != nil, "Retry only on %s", cmp.Or(words.ListOf(p.Classes.RetryOn, bareName), "no error"), "")
	if len(p.Classes.Never) > 0 {
		out.line("Never retry on %s", words.ListOf(p.Classes.Never, bareName))
	} else if p.Classes.RetryOn == nil {
		out.usualLine("Retry on every error")
	}
	if len(p.Classes.Delays) == 0 {
		out.usualLine("Use the same delays after every error")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Classes.Delays)) {
		out.line("On %s errors, %s", bareName(name), action(p.Classes.Delays[name]))
	}
}

func (out *printer) end(p *policy.Policy) {
	const orElse = "wait until the next scheduled refresh, or give up if there is none"
	switch none := p.MaxRetries() == 0; {
	case none && p.OnExhausted == policy.GiveUp:
		out.line("On the first failure, give up")
	case none:
		out.line("On the first failure, reset attempt_no and %s", orElse)
	case p.OnExhausted == policy.GiveUp:
		out.line("Give up after the final unsuccessful retry")
	default:
		out.line("After the final unsuccessful retry, %s", orElse)
	}
	out.lineIf(p.GiveUpAfter > 0, "Give up after %s of unsuccessful attempts", inWords(p.GiveUpAfter), "Never give up for lack of a success")
	out.lineIf(p.DisabledReason != "", "Give the reason %s", strconv.Quote(p.DisabledReason), "Give the usual reason")
	var notified []string
	for _, notice := range policy.Notices {
		if p.Notifies(notice) {
			notified = append(notified, noticeWords[notice])
		}
	}
	switch {
	case len(notified) == len(policy.Notices):
		out.usualLine("Notify the owner of everything")
	case len(notified) == 0:
		out.line("Notify nobody")
	default:
		out.line("Notify the owner when refresh %s", strings.Replace(words.List(notified), " and ", " or ", 1))
	}
	switch to := p.Email; {
	case to.Payload != "":
		out.line("Email the owner at %s of the payload", to.Payload)
	case to.Label != "":
		out.line("Email the owner at the label %s", to.Label)
	case to.Address != "":
		out.line("Email the owner at %q", to.Address)
	default:
		out.usualLine("Send no e-mail")
	}
	out.lineIf(p.FailingFrom > 0, "Notify the owner of the %s failure in a cycle", words.FormatOrdinal(p.FailingFrom), "Notify the owner of no failure")
}

var noticeWords = map[policy.Notice]string{
	policy.NoticeDisabled: "is disabled", policy.NoticeRecovered: "has recovered", policy.NoticeStale: "is stale", policy.NoticeFresh: "is fresh again",
	policy.NoticeSuspect: "is doubted",
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Texts of a policy that a sentence may hold as they are. All others stand in quotes.
var (
	bareZone     = bareIf(regexp.MustCompile(`^[A-Za-z](?:[\w+/-]*\w)?$`).MatchString)
	bareRule     = bareIf(regexp.MustCompile(`^\w(?:[\w=;,:+/-]*\w)?$`).MatchString)
	bareName     = bareIf(isBareName)
	bareClass    = bareIf(func(text string) bool { return statusClass.MatchString(text) || isBareName(text) })
	bareCalendar = bareIf(isCalendar)
	bareMetric   = bareIf(isMetric)
)

func bareIf(safe func(string) bool) func(string) string {
	return func(text string) string {
		if safe(text) {
			return text
		}
		return strconv.Quote(text)
	}
}

func isBareName(text string) bool {
	return isIdentifier(text) || slices.Contains(knownErrors, text) && text != "permanent"
}

func (out *printer) limits(p *policy.Policy) {
	if len(p.Limits) == 0 {
		out.usualLine("Set no limits")
	}
	for _, limit := range p.Limits {
		running := fmt.Sprintf("Run at most %d at a time", limit.Running)
		rate := fmt.Sprintf("Start at most %d in %s", limit.Rate.Count, inWords(limit.Rate.Per))
		switch {
		case limit.Rate.Count == 0:
			out.line("%s for each %s", running, limit.Key)
		case limit.Running == 0:
			out.line("%s for each %s", rate, limit.Key)
		default:
			out.line("%s and %s for each %s", running, words.Clause(rate), limit.Key)
		}
	}
	closed := map[policy.RetryAfterScope]string{policy.ScopeModel: "no keys", policy.ScopeKey: "keys"}[p.RetryAfterScope]
	out.lineIf(closed != "", "Let a retry_after close %s", closed, "Let a retry_after close keys only after http_429")
	most := "Let a server ask to wait for at most " + inWords(cmp.Or(p.MaxRetryAfter, policy.DefaultMaxRetryAfter))
	out.lineIf(p.MaxRetryAfter > 0, "%s", most, most)
	if c := p.Circuit; c == nil {
		out.usualLine("Open no circuit")
	} else {
		out.line("Open the circuit of each %s after %s of %d attempts", c.Key, words.Count(c.Failures, "failure", "failures"), c.Of)
		out.lineIf(c.On != nil, "Count only %s for the circuit", words.ListOf(c.On, bareClass), "")
		out.line("Probe an open circuit after %s", inWords(c.Probe))
	}
	out.lineIf(len(p.Closed) > 0, "Stay closed on %s", words.ListOf(p.Closed, bareCalendar), "Stay closed on no calendar")
	out.lineIf(p.FreshWithin > 0, "Keep the model fresh within %s", inWords(p.FreshWithin), "Promise no freshness")
	out.lineIf(p.WarnWithin > 0, "Warn after %s without a success", inWords(p.WarnWithin), "")
}

func (out *printer) guards(p *policy.Policy) {
	if len(p.Guard) == 0 {
		out.usualLine("Doubt no refresh")
	}
	for _, g := range p.Guard {
		metric, bound, last := bareMetric(g.Metric), decimal(g.Bound), ""
		if words.Thousand.MatchString(bound) {
			bound += "0"
		}
		if g.Relative() && g.Of != policy.DefaultGuardOf {
			last = " of the last " + strconv.Itoa(g.Of) + " results"
		}
		switch {
		case g.Rule == policy.GuardMin && g.Bound == 1:
			out.line("Doubt a refresh without %s", metric)
		case g.Rule == policy.GuardMin:
			out.line("Doubt a refresh with fewer than %s %s", bound, metric)
		case g.Rule == policy.GuardMax:
			out.line("Doubt a refresh with more than %s %s", bound, metric)
		case g.Rule == policy.GuardDrop && g.Bound == 50:
			out.line("Doubt a refresh with less than half of the usual %s%s", metric, last)
		case g.Rule == policy.GuardDrop:
			out.line("Doubt a refresh with more than %s percent fewer %s than usual%s", bound, metric, last)
		case g.Bound == 100:
			out.line("Doubt a refresh with more than twice the usual %s%s", metric, last)
		default:
			out.line("Doubt a refresh with more than %s percent more %s than usual%s", bound, metric, last)
		}
	}
	fate := map[policy.OnSuspect]string{policy.SuspectFail: "Fail", policy.SuspectHold: "Hold"}[p.OnSuspect]
	out.lineIf(fate != "", "%s a doubted refresh", fate, "Tell of a doubted refresh")
}
