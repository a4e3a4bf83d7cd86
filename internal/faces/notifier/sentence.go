package notifier

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// What says in a sentence what happened.
func (n Notice) What() string {
	switch event := n[fieldEvent]; {
	case event == string(policy.NoticeRecovered):
		return n[fieldUID] + " works again."
	case event == string(policy.NoticeFresh):
		return n[fieldUID] + " is fresh again."
	case n[fieldUID] != "":
		return n[fieldUID] + " is " + event + "."
	case event == "new_error":
		models, _ := strconv.Atoi(n["models"]) // of a number that cannot be read nothing is told
		return words.Count(models, "model fails", "models fail") + " by " + cmp.Or(n["signature"], n["error"]) + "."
	case n[fieldKey] == model.QueueCircuitKey:
		return "The circuit of the whole queue is " + became[event] + "."
	default:
		return "The circuit of " + n[fieldKey] + " is " + became[event] + "."
	}
}

var became = map[string]string{"circuit_opened": "open", "circuit_closed": "closed"}

// Why says why, in the words of a worker, of a policy or of whoever did it; empty: nobody says.
func (n Notice) Why() string {
	reason := n["reason"]
	switch times, _ := strconv.Atoi(n["attempt_no"]); {
	case n[fieldEvent] == string(policy.NoticeFailing):
		return words.Sentence("it failed " + words.Count(times, "time", "times") + ": " + cmp.Or(reason, n["error_type"], "nobody said why"))
	case n[fieldEvent] == string(policy.NoticeStale):
		at, err := time.Parse(time.RFC3339, n["last_success_at"])
		if err != nil {
			return "It has never succeeded."
		}
		return "Its last success was at " + at.UTC().Format(time.DateTime) + "."
	case n["failures"] != "":
		failed, _ := strconv.Atoi(n["failures"])
		succeeded, _ := strconv.Atoi(n["successes"])
		return strconv.Itoa(failed) + " of the last " + words.Count(failed+succeeded, "attempt", "attempts") + " failed."
	case n["by"] != "":
		return words.Sentence("by " + strings.TrimSuffix(n["by"]+": "+reason, ": "))
	case reason != "":
		return strings.TrimSuffix(reason, ".") + "." // in the words of others
	}
	return ""
}

// Next says what happens next, or what to do; empty: nothing.
func (n Notice) Next() string {
	switch n[fieldEvent] {
	case string(policy.NoticeDisabled):
		return "Nothing is tried until it is saved or enabled."
	case string(policy.NoticeFailing):
		return words.Sentence(n["refresh_why"])
	case string(policy.NoticeStale):
		return "Look why it fails or waits."
	case "circuit_opened":
		if n[fieldKey] == model.QueueCircuitKey {
			return "Look for a cause on your side. No model is disabled meanwhile."
		}
		return "Its models wait until a probe succeeds."
	case "circuit_closed":
		if n[fieldKey] == model.QueueCircuitKey {
			return "Failures may disable models again."
		}
		return "Its models start again."
	case "new_error":
		return "Mend the cause, then run these models."
	}
	return ""
}
