package english

import (
	"regexp"
	"slices"
	"strings"
)

// read takes one sentence into account, or several that commas and words join.
func (d *draft) read(s *sentence) {
	d.now = s
	ofError := d.errorLine == s.line && thatFails.MatchString(s.written) // "on timeouts, retry after 5 minutes; if that fails, give up"
	d.mustKnow(!ofError && d.readClauses(s.written))
	never, _ := d.doc["never_retry"].([]any)
	delays, _ := d.doc["delays_by_error"].(map[string]any)
	for _, name := range never {
		if path := "delays_by_error." + name.(string); delays[name.(string)] != nil && delays[name.(string)] != neverRetry && d.lines[path] == d.lines["never_retry"] {
			d.refuse("one thing to do after "+name.(string), "two: "+d.found())
		}
	}
}

// readClauses reads a text whole or else cut in two where it can be, behind the longest part that is known.
func (d *draft) readClauses(text string) bool {
	before := d.copy()
	whole := d.readClause(text)
	if whole && d.err == nil || len(text) > maxChained {
		return whole
	}
	refused, unclear := d.err, false
	for _, joint := range slices.Backward(betweenClauses.FindAllStringSubmatchIndex(text, maxJoined)) {
		*d = before.copy()
		first, rest := text[:joint[0]], text[joint[2]:]
		if halved(first, rest, text[joint[0]:joint[2]]) {
			unclear = unclear || d.readClause(first) && d.err == nil && d.readClauses(rest) && d.err == nil
			continue
		}
		retries := aboutRetries().MatchString(first)
		if givingUp().MatchString(first) && tellOwner().MatchString(rest) { // "give up and notify the owner"
			rest += " that it has been disabled"
		}
		if retries && onlyClause.MatchString(rest) { // "retry twice, only on timeouts"
			rest = "retry " + rest
		} else if retries && aboutRetries().MatchString(rest) && !strings.HasPrefix(rest, "retry only") {
			continue
		}
		if d.readClause(first) && d.err == nil {
			if d.readClauses(rest) && d.err == nil {
				return true
			}
			break
		}
	}
	*d = before
	if d.err = refused; !whole && unclear {
		d.refuse("a sentence for each part, as its condition may hold for both", d.found())
	}
	return whole || unclear
}

var (
	betweenClauses = regexp.MustCompile(`(?i)(?:, (?:and |but )?(?:then,? )?| (?:and|but) (?:then )?| with (?:an? )?)(\S)`)
	givingUp       = lazy(`\b<give up>\b`)
	tellOwner      = lazy(`^(?:notify|tell|inform|alert|e-?mail) <reader>(?: at <mailbox>)?$`)
	onlyClause     = regexp.MustCompile(`(?i)^(?:only|never|not) (?:on|between|from|before|after|during|at|if|when|in)\b`)

	condition   = regexp.MustCompile(`(?i)^(?:on|after|if|when|whenever|once|upon|in case of|with|for) `)
	thatFails   = regexp.MustCompile(`(?i)^(?:if|when) (?:that|this|it)\b.* fails\b`)
	ofFailure   = regexp.MustCompile(`(?i)^(?:retry|never retry|(?:do not|don't) retry|wait|give up|reset)\b`)
	onSomething = regexp.MustCompile(`(?i)^(?:retry|never retry|(?:do not|don't) retry|wait|give up|tell|notify)\b.* (?:on|after) [^,]+$`)
	butJoint    = regexp.MustCompile(`(?i)\bbut\b|^, $`)
)

// halved reports whether a condition in one half of a sentence may hold for the other one: "on timeouts, wait 5 minutes and give up",
// "don't retry and give up on timeouts".
func halved(first, rest, joint string) bool {
	if condition.MatchString(first) {
		return !condition.MatchString(rest)
	}
	return ofFailure.MatchString(first) && onSomething.MatchString(rest) && !butJoint.MatchString(joint)
}

// readClause reads a text in the way of one form. Inside a block an action belongs to its heading.
func (d *draft) readClause(text string) bool {
	before := d.copy()
	if *d.looks++; *d.looks > maxLooks {
		d.refuse("fewer sentences", "more than a policy needs")
		return true
	}
	d.now.text = plain(text)
	if d.at != 0 || d.inWindow { // the first sentence behind the heading of an open block always belongs to it
		same := d.now.level == d.block.heading
		d.block.flat = d.block.flat || same && !d.block.entered
		d.block.entered = true
		if d.now.level.indent >= d.block.heading.indent && (d.block.flat || !same) && d.act(d.now.text) {
			return true
		}
	}
	d.closeBlock()
	if d.apply(writtenGrammar(), text) || d.apply(sentenceGrammar(), d.now.text) || d.act(d.now.text) {
		return true
	}
	*d = before
	return false
}

// act reads actions that "and" joins, and reports whether all are known.
func (d *draft) act(text string) bool {
	if d.apply(actionGrammar(), text) {
		return true
	}
	joints := betweenActions.FindAllStringIndex(text, maxJoined+1)
	if len(joints) > maxJoined {
		return false
	}
	for _, joint := range joints {
		if !condition.MatchString(text) && d.apply(actionGrammar(), text[:joint[0]]) {
			return d.act(text[joint[1]:])
		}
	}
	return false
}

var betweenActions = regexp.MustCompile(`(?i),? and `)
