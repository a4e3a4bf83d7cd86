package simulation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/refreshd/refreshd/model"
)

// lanes keep the commands about each model that were pushed and are not handled yet, in the order in
// which they reached Redis.
type lanes map[string][]string

// subject is the model that a command is about; empty: it is no command, or one that cannot be read.
func subject(message string) string {
	if message[0] != 'c' {
		return ""
	}
	command, err := model.DecodeCommand([]byte(message[1:]))
	if err != nil {
		return ""
	}
	return command.UID
}

// push notes messages that have reached Redis.
func (l lanes) push(messages []string) {
	for _, message := range messages {
		if uid := subject(message); uid != "" {
			l[uid] = append(l[uid][:len(l[uid]):len(l[uid])], message)
		}
	}
}

// pop takes out what was handled, and returns it with the commands about each model in their order. Of these, none may have been
// handled before one that was pushed earlier.
func (l lanes) pop(handled []string) (ordered []string, err error) {
	counts := map[string]int{}
	for _, message := range handled {
		if uid := subject(message); uid != "" {
			counts[uid]++
		} else {
			ordered = append(ordered, message)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(counts)) {
		first, left := l[uid][:counts[uid]], slices.Clone(handled)
		for _, message := range first {
			at := slices.Index(left, message)
			if at < 0 {
				return nil, fmt.Errorf("a command was handled before one that was pushed earlier: of %q these were handled: %q", l[uid], handled)
			}
			left = slices.Delete(left, at, at+1)
		}
		ordered = append(ordered, first...)
		if l[uid] = l[uid][len(first):]; len(l[uid]) == 0 {
			delete(l, uid)
		}
	}
	return ordered, nil
}
