package notifier

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// What says what happened.
func (n Notice) What() string { return n.say()[0] }

// Why gives the reason, in the words of a worker, a policy or an operator; empty: unknown.
func (n Notice) Why() string { return n.say()[1] }

// Next says what happens next, or what to do; empty: nothing.
func (n Notice) Next() string { return n.say()[2] }

func (n Notice) say() [3]string {
	number := func(field string) int { count, _ := strconv.Atoi(n[field]); return count } // 0 if it is no number
	is, reason := n[fieldUID]+" is ", ""
	if n["reason"] != "" {
		reason = strings.TrimSuffix(n["reason"], ".") + "."
	}
	circuit, opened, closed := n[fieldKey], "Its models wait until a probe succeeds.", "Its models start again."
	if circuit == model.QueueCircuitKey {
		circuit, opened, closed = "the whole queue", "Look for a cause on your side. No model is disabled meanwhile.", "Failures may disable models again."
	}
	by := reason
	if failed := number("failures"); n["failures"] != "" {
		by = fmt.Sprintf("%d of the last %s failed.", failed, words.Count(failed+number("successes"), "attempt", "attempts"))
	} else if n["by"] != "" {
		by = words.Sentence("by " + strings.TrimSuffix(n["by"]+": "+reason, ": "))
	}
	switch event := n[fieldEvent]; event {
	case "circuit_opened":
		return [3]string{"The circuit of " + circuit + " is open.", by, opened}
	case "circuit_closed":
		return [3]string{"The circuit of " + circuit + " is closed.", by, closed}
	case "new_error":
		what := words.Count(number("models"), "model fails", "models fail") + " with " + cmp.Or(n["signature"], n["error"]) + "."
		return [3]string{what, reason, "Mend the cause, then run these models."}
	case string(policy.NoticeRecovered):
		return [3]string{n[fieldUID] + " works again.", by}
	case string(policy.NoticeFresh):
		return [3]string{is + "fresh again.", by}
	case string(policy.NoticeFailing):
		why := "it failed " + words.Count(number("attempt_no"), "time", "times") + ": " + cmp.Or(n["reason"], n["error_type"], "nobody said why")
		return [3]string{is + event + ".", words.Sentence(why), words.Sentence(n["refresh_why"])}
	case string(policy.NoticeSuspect):
		return [3]string{"The last success of " + n[fieldUID] + " is doubted.", by, "Look at the numbers, then accept or reject it."}
	case string(policy.NoticeStale):
		if at := n["last_success_at"]; at != "" {
			return [3]string{is + event + ".", "Its last success was at " + at + ".", "Look why it fails or waits."}
		}
		return [3]string{is + event + ".", "It has never succeeded.", "Look why it fails or waits."}
	default:
		return [3]string{is + event + ".", by, "Nothing is tried until it is saved or enabled."}
	}
}
