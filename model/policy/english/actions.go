package english

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/policy"
)

// actions may follow "On the second failure, ", or be below "On the seventh failure:" or "Give up after ...:", or alone.
var actions = []form{
	{`retry <immediately>`, "On the first failure, retry immediately", follow("0s")},
	{`retry (?:after|in) <duration> / retry <duration> later / wait (?:for )?<duration>(?:,? (?:and then retry|and retry(?: each time)?|then retry|before (?:retrying|retry|the (?:next )?retry)))? / the delay is <duration> / the next retry (?:comes|starts) after <duration>`,
		"On the second failure, retry after 1 minute", func(d *draft, slots []string) {
			d.mustKnow(d.at != 0)
			d.follow(d.duration(d.failures[d.at].field, slots[0]))
		}},
	{`retry (?:with|at) <planned>`, "On the second failure, retry at the next scheduled refresh", func(d *draft, _ []string) {
		d.mustKnow(d.at != 0 || !strings.HasPrefix(strings.ToLower(d.now.text), "retry")) // after which failure?
		d.follow(nextDelay)
	}},
	{`<wait planned>(?: and (?:start|begin) <new cycle>)?<or else>`, "Wait until the next scheduled refresh", follow(nextDelay)},
	{`reset (?:the )?attempt(?:_no| number)`, "Reset attempt_no", follow(nextPlanned)},
	{`<give up>`, "Panic", follow(giveUp)},
	{`give up <immediately>`, "On the first failure, give up immediately", func(d *draft, _ []string) {
		d.mustKnow(d.at != 0)
		d.follow(giveUp)
	}},
	{`<give up> with (?:the reason )?<text>`, `Disable the model with the reason "thumbnail creation failed"`, func(d *draft, slots []string) { d.giveUpAs(d.now.value(slots[0])) }},
	{`mark <the model> (?:with|as) <text>`, `Mark the banner with "thumbnail creation failed"`, func(d *draft, slots []string) {
		reason := d.now.value(slots[0])
		if !strings.HasSuffix(reason, "..") { // one full stop at the end of the quote ends the sentence
			reason = strings.TrimSuffix(reason, ".")
		}
		d.giveUpAs(reason)
	}},
	{`<events> => <tell> <reader>(?: at <mailbox>)? / <events> => send an e-?mail to <reader>(?: at <mailbox>)? / <events> => send <reader> an e-?mail(?: at <mailbox>)?`,
		"Email the customer that the refresh has been disabled", func(d *draft, slots []string) {
			d.mustKnow(slices.Equal(d.events(slots[0]), []policy.Notice{policy.NoticeDisabled}))
			if d.at != 0 {
				d.follow(giveUp)
			}
			d.notifyOwner(slots)
		}},
}

// Policies are made of these words.
const (
	giveUp      = string(policy.GiveUp)
	nextPlanned = string(policy.NextPlanned) // here: count the failures anew
	nextDelay   = "next"
	neverRetry  = "never"
)

// follow notes what follows the failure at hand: a delay, or one of the words above. Alone it follows the last one, so that no failure may follow it.
// Below "Give up after one week ...:" giving up repeats the heading.
func (d *draft) follow(what string) {
	switch {
	case d.inWindow && what == giveUp:
	case d.at != 0:
		o := d.failures[d.at]
		o.then = append(slices.Clip(o.then), what)
		d.failures[d.at] = o
	case what == nextDelay:
		d.end(nextPlanned)
	case what == giveUp, what == nextPlanned:
		d.end(what)
	default:
		d.fail(errNotKnown)
	}
}

func follow(what string) func(*draft, []string) {
	return func(d *draft, _ []string) { d.follow(what) }
}

func (d *draft) end(what string) {
	d.ended = cmp.Or(d.ended, d.now.line)
	d.exhausted(what)
}

func (d *draft) giveUpAs(reason string) {
	d.follow(giveUp)
	d.set("disabled_reason", reason)
}

var states = map[string]policy.Notice{"disabled": policy.NoticeDisabled, "gives up": policy.NoticeDisabled, "recovers": policy.NoticeRecovered,
	"recovered": policy.NoticeRecovered, "has recovered": policy.NoticeRecovered, "stale": policy.NoticeStale, "fresh again": policy.NoticeFresh, "doubted": policy.NoticeSuspect}

var (
	beforeState = regexp.MustCompile(`(?i)^(?:when|if|that|once|whenever|as soon as|notifying (?:them|him|her|it) that|saying that) `)
	toState     = regexp.MustCompile(`(?i)^(?:(?:(?:an?|the|its) )?(?:auto-?)?refresh(?:ing|es)? )?(?:(?:is|was|has been|gets|becomes|goes|turns) )?`)
)

func (d *draft) events(text string) (notices []policy.Notice) {
	for _, part := range betweenAll.Split(text, -1) {
		state := toState.ReplaceAllString(d.cutSubject(beforeState.ReplaceAllString(part, "")), "")
		notice, known := states[strings.ToLower(state)]
		d.mustKnow(known)
		notices = append(notices, notice)
	}
	return notices
}
