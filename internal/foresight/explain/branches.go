package explain

import (
	"fmt"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// Next is what follows if the attempt that runs, or the next one, succeeds, fails or is never answered; nil: there will be none.
func (s *Explanation) Next() (told []string) {
	f := &s.Forecast
	if !f.Success.Possible() {
		return nil
	}
	told = []string{s.ending("If it succeeds", f.Success), s.ending("If it fails", f.Failure)}
	if lost := f.TimedOut; lost.At.Sub(s.Now) < forever {
		told = append(told, s.ending("If no answer comes before "+s.clock(lost.At), lost))
	}
	switch {
	case s.Gate != "":
		told = append(told, "These times are for a start and an answer now.")
	case !f.StartAt.IsZero():
		told = append(told, "These times are for an answer at once.")
	}
	if f.Jitter > 0 {
		told = append(told, fmt.Sprintf("Jitter may move a retry by %g%%.", 100*f.Jitter))
	}
	return told
}

// ending tells what comes of a branch, after a colon if there is room within a sentence.
func (s *Explanation) ending(when string, b model.Branch) string {
	told := s.coming(b)
	if len(strings.Fields(when))+len(strings.Fields(told[0])) > 15 {
		return when + ", the attempt has ended. " + join(told)
	}
	return when + ": " + words.Clause(join(told))
}

// Past tells how the attempts ended that ended last, the oldest first.
func (s *Explanation) Past() (told []string) {
	for i := len(s.Attempts) - 1; i >= 0; i-- {
		told = append(told, s.past(&s.Attempts[i]))
	}
	return told
}

func (s *Explanation) past(a *model.Attempt) string {
	text := map[model.Event]string{
		model.EventSuccess: "it succeeded", model.EventFailure: "it failed", model.EventTimeout: "no answer had come in time",
		model.EventPostponed: "its worker postponed it", model.EventInterrupted: "its worker had to stop", model.EventQueueTimeout: "no worker had begun it",
		model.EventOutdated: "a result came for a replaced payload",
	}[a.Outcome]
	if text == "" {
		text = strings.ReplaceAll(string(a.Outcome), "_", " ") + " ended it"
	}
	if a.Reason != "" && a.Outcome != model.EventTimeout {
		text += ": " + a.Reason
	}
	if a.Times > 1 {
		text += fmt.Sprintf(" (%d in a row)", a.Times)
	}
	text = words.Sentence("At " + s.clock(a.EndedAt) + " " + text)
	if len(a.Ignored) > 0 {
		text += " Unusable in its message: " + strings.Join(a.Ignored, ", ") + "."
	}
	return text
}
