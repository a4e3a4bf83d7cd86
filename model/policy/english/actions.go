package english

import (
	"cmp"
	"strings"

	"github.com/refreshd/refreshd/model/policy"
)

// actions are what may follow "On the second failure, ", or stand below "On the seventh failure:" or "Give up after ...:", or
// alone.
var actions = []form{
	{"retry", `(?:immediately|at once|now)`, "On the first failure, retry immediately", retry("0s")},
	{"retry", `(?:after|in) <duration>`, "On the second failure, retry after 1 minute", (*draft).retryAfter},
	{"wait", `<planned><else>`, "Wait until the next scheduled refresh", (*draft).wait},
	{"reset", `(?:the )?attempt(?:_no| number)`, "Reset attempt_no", (*draft).reset},
	{"panic", ``, "Panic", (*draft).giveUp},
	{"give", `up`, "Give up", (*draft).giveUp},
	{"disable|stop", `<the model>`, "Disable auto-refresh", (*draft).giveUp},
	{"disable|stop", `<the model> with (?:the reason )?<text>`, `Disable the model with the reason "thumbnail creation failed"`, (*draft).disable},
	{"mark", `<the model> (?:with|as) <text>`, `Mark the banner with "thumbnail creation failed"`, (*draft).mark},
	{"email|e-mail|notify|tell", `<reader>(?: at <mailbox>)? (?:that|when) .*\b(?:disabled)`,
		"Email the customer that the refresh has been disabled", (*draft).notifyDisabled},
	{"send", `(?:an email to <reader>(?: at <mailbox>)?|<reader> an email(?: at <mailbox>)?) (?:that|notifying (?:them|him|her|it) that|saying that) .*\b(?:disabled)`,
		"Send the customer an email notifying them that refresh has been disabled", (*draft).notifyDisabled},
}

// Policies are made of these words.
const (
	giveUp      = string(policy.GiveUp)
	nextPlanned = string(policy.NextPlanned)
	nextDelay   = "next"
	neverRetry  = "never"
)

// retry returns an action that sets the delay of the failure at hand.
func retry(delay string) func(*draft, []string) error {
	return func(d *draft, _ []string) error {
		if d.at == nil {
			return errNotKnown
		}
		if d.at.delay != "" {
			return d.refuse("one delay after a failure, as line "+number(d.at.line)+" says already", d.found())
		}
		d.at.delay = delay
		return nil
	}
}

func (d *draft) retryAfter(slots []string) error {
	if d.at == nil {
		return errNotKnown
	}
	delay, err := d.duration(d.at.field, slots[0])
	if err != nil {
		return err
	}
	return retry(delay)(d, nil)
}

func (d *draft) wait([]string) error {
	if d.at == nil {
		return d.end(nextPlanned)
	}
	d.at.wait = true
	return nil
}

func (d *draft) reset([]string) error {
	if d.at == nil {
		return d.end(nextPlanned)
	}
	d.at.reset = true
	return nil
}

// giveUp below "Give up after one week ...:" says again what the heading says.
func (d *draft) giveUp([]string) error {
	switch {
	case d.inWindow:
		return nil
	case d.at == nil:
		return d.end(giveUp)
	}
	d.at.final = true
	return nil
}

// end reads an action that stands alone: it follows the last failure, so that no failure may follow it.
func (d *draft) end(what string) error {
	d.ended = cmp.Or(d.ended, d.now.line)
	return d.exhausted(what)
}

func (d *draft) disable(slots []string) error {
	if err := d.giveUp(nil); err != nil {
		return err
	}
	return d.set("disabled_reason", d.now.value(slots[len(slots)-1]))
}

// mark is disable, but a full stop at the end of the quote is that of the sentence.
func (d *draft) mark(slots []string) error {
	if err := d.giveUp(nil); err != nil {
		return err
	}
	return d.set("disabled_reason", cutFullStop(d.now.value(slots[0])))
}

func (d *draft) notifyDisabled(slots []string) error {
	if d.at != nil {
		d.at.final = true
	}
	if err := d.emailTo(slots); err != nil {
		return err
	}
	return d.notify(policy.NoticeDisabled)
}

// cutFullStop removes one full stop, but no ellipsis.
func cutFullStop(text string) string {
	if strings.HasSuffix(text, "..") {
		return text
	}
	return strings.TrimSuffix(text, ".")
}
