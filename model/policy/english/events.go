package english

import (
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/policy"
)

// states are what may be said of a model, each with the notice that tells it.
var states = map[string]policy.Notice{"disabled": policy.NoticeDisabled, "gives up": policy.NoticeDisabled, "recovers": policy.NoticeRecovered,
	"recovered": policy.NoticeRecovered, "has recovered": policy.NoticeRecovered, "stale": policy.NoticeStale, "fresh again": policy.NoticeFresh}

var (
	beforeState = regexp.MustCompile(`(?i)^(?:when|if|that|notifying (?:them|him|her|it) that|saying that) `)
	toState     = regexp.MustCompile(`(?i)^(?:(?:(?:the|its) )?(?:auto-?)?refresh(?:ing|es)? )?(?:(?:is|was|has been|gets|becomes) )?`)
)

// events reads of which notices a text such as "when the model is disabled or recovers" tells. Each of its words must belong to one.
func (d *draft) events(text string) (notices []policy.Notice) {
	for _, part := range betweenAll.Split(text, -1) {
		state := toState.ReplaceAllString(d.cutSubject(beforeState.ReplaceAllString(part, "")), "")
		notice, known := states[strings.ToLower(state)]
		if !known {
			d.fail(errNotKnown)
			return nil
		}
		notices = append(notices, notice)
	}
	return notices
}
