package english

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// writer writes policies in the way of people, and knows what they mean without reading them.
type writer struct{ *rand.Rand }

func (w writer) of(texts ...string) string { return texts[w.IntN(len(texts))] }

// maybe is a text or nothing.
func (w writer) maybe(text string) string { return w.of(text, "") }

func (w writer) duration() (text, canonical string) {
	n := 2 + w.IntN(50)
	unit := w.of("second", "minute", "hour", "day")
	written := fmt.Sprint(n)
	if n <= 12 && w.IntN(2) == 0 {
		written = strings.Fields("two three four five six seven eight nine ten eleven twelve")[n-2]
	}
	switch w.IntN(8) {
	case 0:
		return w.of("an hour", "one hour", "1 hour", "PT1H", "60 minutes"), "1h"
	case 1:
		return w.of("half an hour", "30 minutes", "1800 seconds"), "30m"
	default:
		return written + " " + unit + "s", fmt.Sprint(n) + unit[:1]
	}
}

func (w writer) count() (text string, n int) {
	n = 2 + w.IntN(8)
	return w.of(fmt.Sprint(n), strings.Fields("two three four five six seven eight nine")[n-2]), n
}

func (w writer) failure() (text, errorType string) {
	switch w.IntN(5) {
	case 0:
		status := fmt.Sprint(400 + w.IntN(150))
		return w.of("HTTP "+status, "http_"+status, status), "http_" + status
	case 1:
		return w.of("timeout", "timeouts", "timeout errors"), "timeout"
	case 2:
		name := w.of("network", "truncated", "stalled", "too_slow", "silent")
		return name + w.of(" errors", ""), name
	case 3:
		name := w.of("Gone", "purpose", "every error", "Monday")
		return `"` + name + `"`, name
	default:
		name := w.of("ValidationError", "RateLimited", "net.Dial", "quota_exceeded", "IOError")
		return name + w.of(" errors", ""), name
	}
}

type meaning = map[string]any

// about writes a sentence about one field.
var about = map[string]func(w writer) (string, meaning){
	"timeout": func(w writer) (string, meaning) {
		d, canonical := w.duration()
		each := w.of("An", "Each", "Every") + " attempt"
		return w.of("Allow "+w.of("", "up to ", "at most ")+d+w.of("", " to complete", " to finish", " for a response"), each+" may take up to "+d, each+" times out after "+d,
			"Time out after "+d, "The timeout is "+d, each+" must finish within "+d, "Let each attempt run for "+d), meaning{"timeout": canonical}
	},
	"queue_timeout": func(w writer) (string, meaning) {
		d, canonical := w.duration()
		return w.of("Allow "+d+" in the queue", "Wait at most "+d+" in the queue", "An attempt may wait up to "+d+" in the queue"), meaning{"queue_timeout": canonical}
	},
	"retries": func(w writer) (string, meaning) {
		switch w.IntN(5) {
		case 0:
			d, base := w.duration()
			times, n := w.count()
			return w.of(fmt.Sprintf("Retry %s%s times, %s apart", w.of("", "up to ", "at most "), times, d), fmt.Sprintf("Retry every %s, up to %s times", d, times),
				fmt.Sprintf("Retry up to %s times. Wait %s between retries", times, d)), meaning{"retries": meaning{"strategy": "fixed", "base": base, "count": n}}
		case 1:
			strategy := w.of("exponential", "linear", "fibonacci")
			times, n := w.count()
			return fmt.Sprintf("Retry %s%s times with %s %s%s 10 seconds%s 3 days", w.maybe("up to "), times, strategy, w.of("delays", "backoff"),
					w.of(" from", " starting at", ", starting with"), w.of(", at most", " and capped at", ", but at most")),
				meaning{"retries": meaning{"strategy": strategy, "base": "10s", "cap": "3d", "count": n}}
		case 2:
			return w.of("Don't retry", "Do not retry at all", "Never retry", "No retries"), meaning{"retries": []any{}}
		case 3:
			d, delay := w.duration()
			return w.of("Retry "+w.of("immediately", "right away", "at once")+", then after "+d, "Retry twice: immediately and after "+d), meaning{"retries": []any{"0s", delay}}
		default:
			d, delay := w.duration()
			again := w.of("retry after "+d, "retry in "+d, "retry "+d+" later", "wait "+d+" and retry", "wait "+d+" before retrying", "try again after "+d)
			return w.of("On the first failure, retry "+w.of("immediately", "right away")+". On the second failure, "+again, "First failure: retry at once. Second failure: "+again,
				"If the first attempt fails, retry immediately. When the second attempt fails, "+again), meaning{"retries": []any{"0s", delay}}
		}
	},
	"jitter": func(w writer) (string, meaning) {
		percent := 1 + w.IntN(99)
		return fmt.Sprintf(w.of("Vary the delays by %d percent", "Add %d%% jitter", "Use a jitter of %d%%", "Add up to %d percent of jitter"), percent), meaning{"jitter": float64(percent) / 100}
	},
	"alignment": func(w writer) (string, meaning) {
		planned := w.of("scheduled", "planned")
		return w.of("Skip retries that overlap with a "+planned+" refresh", "Retries must not overlap with "+planned+" refreshes"), meaning{"alignment": "align_planned"}
	},
	"on_exhausted": func(w writer) (string, meaning) {
		front := w.of("After the last retry, ", "If all retries fail, ", "When all retries have failed, ", "After the final unsuccessful retry, ")
		if w.IntN(2) == 0 {
			return front + w.of("give up", "disable the model", "stop refreshing"), meaning{"on_exhausted": "give_up"}
		}
		return front + "wait " + w.of("for", "until") + " the next " + w.of("scheduled", "planned") + " refresh", meaning{"on_exhausted": "next_planned"}
	},
	"give_up_after": func(w writer) (string, meaning) {
		d, canonical := w.duration()
		return w.of("Give up after "+d, "Give up after "+d+" without success", "Disable the model after "+d+" of unsuccessful attempts", "Give up if it has not succeeded for "+d,
			"If there is no success within "+d+", give up"), meaning{"give_up_after": canonical}
	},
	"errors": func(w writer) (string, meaning) {
		one, first := w.failure()
		two, second := w.failure()
		both := w.of(one+" and "+two, one+" or "+two)
		return w.of("Never retry on "+both, "Don't retry "+both, "Do not retry on "+both, "Never retry if the error is "+both), meaning{"never_retry": []any{first, second}}
	},
	"delays_by_error": func(w writer) (string, meaning) {
		one, name := w.failure()
		if w.IntN(2) == 0 {
			return w.of("On ", "After ", "For ") + one + ", " + w.of("never retry", "do not retry", "don't retry", "give up"), meaning{"delays_by_error": meaning{name: "never"}}
		}
		d, delay := w.duration()
		return w.of("On ", "If the error is ") + one + ", " + w.of("retry after "+d, "wait "+d+" and then retry"), meaning{"delays_by_error": meaning{name: delay}}
	},
	"retry_window": func(w writer) (string, meaning) {
		from := 1 + w.IntN(10)
		until := from + 2
		rule := fmt.Sprintf("FREQ=DAILY;BYHOUR=%d,%d", from, from+1)
		return w.of("Retry only ", "Only retry ", "Start retries only ") + w.of(fmt.Sprintf("between %d:00 and %d:00", from, until), fmt.Sprintf("from %02d:00 to %02d:00", from, until)),
			meaning{"retry_window": rule}
	},
	"misfire": func(w writer) (string, meaning) {
		d, age := w.duration()
		switch w.IntN(3) {
		case 0:
			return w.of("Skip missed refreshes", "Ignore missed refreshes", "Don't run missed refreshes", "If a refresh was missed, skip it"), meaning{"misfire": "skip"}
		case 1:
			return w.of("Run a missed refresh once", "Catch up on missed refreshes once", "If a refresh was missed, run it once"), meaning{"misfire": "run_once"}
		default:
			return w.of("Run a missed refresh once if it is younger than "+d, "Skip missed refreshes older than "+d), meaning{"misfire": "run_if_younger_than " + age}
		}
	},
	"spread": func(w writer) (string, meaning) {
		d, canonical := w.duration()
		return "Spread " + w.of("the refreshes", "refreshes", "the load", "the starts") + w.of(" over ", " across ") + d, meaning{"spread": canonical}
	},
	"limits": func(w writer) (string, meaning) {
		times, n := w.count()
		key := w.of("{host(input_url)}", "{label.tenant}", "{policy}")
		return fmt.Sprintf("Run %s %s %s %s %s", w.of("at most", "no more than", "only", "up to"), times, w.of("at a time", "at the same time", "at once"), w.of("for each", "per"), key),
			meaning{"limits": []any{meaning{"key": key, "running": n}}}
	},
	"fresh_within": func(w writer) (string, meaning) {
		d, canonical := w.duration()
		return w.of("Keep the model fresh within "+d, "The model must never be older than "+d, "It is stale after "+d, "Consider it stale after "+d), meaning{"fresh_within": canonical}
	},
	"notify": func(w writer) (string, meaning) {
		disabled := w.of("is disabled", "has been disabled", "gets disabled", "gives up")
		who := w.of("Notify the owner", "Tell the customer", "Email the owner") + w.of(" when ", " if ")
		if w.IntN(2) == 0 {
			return who + w.of("it ", "the model ", "the feed ") + disabled, meaning{"notify": []any{"disabled"}}
		}
		return who + "it " + disabled + w.of(" or ", " and when it ") + "recovers", meaning{"notify": []any{"disabled", "recovered"}}
	},
	"failing_from": func(w writer) (string, meaning) {
		times, n := w.count()
		return w.of("Notify the owner after "+times+" failures in a row", "Tell the owner after "+times+" consecutive failures", "Notify the owner when it fails "+times+" times in a row"),
			meaning{"failing_from": n}
	},
}

func TestWhatIsWrittenByAGeneratorIsReadAsItWasMeant(t *testing.T) {
	w := writer{rand.New(rand.NewPCG(22, 3))}
	fields := slices.Sorted(maps.Keys(about))
	sentences := 0
	for sentences < 3000 {
		var lines []string
		means := meaning{}
		for _, i := range w.Perm(len(fields))[:1+w.IntN(4)] {
			line, means1 := about[fields[i]](w)
			lines = append(lines, line)
			maps.Copy(means, means1)
			sentences++
		}
		text := strings.Join(lines, w.of(". ", ".\n", "\n- ", ";\n"))
		if got, err := readMeaning(t, text); err != nil || got != meaningOf(t, means) {
			t.Errorf("%s\nis not read as\n%v, but %s (%v)", text, means, got, err)
		}
	}
}
