package operate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/fingerprint"
)

// RejectedGroup are the rejected messages of a queue, or a part of it, that came by one list and were rejected for one reason.
type RejectedGroup struct {
	ID       string `json:"id"`
	Queue    string `json:"queue"`  // or the part of it, in which they are kept
	Source   string `json:"source"` // output or control
	Reason   string `json:"reason"` // what their reasons have in common
	Messages int    `json:"messages"`
	First    string `json:"first_at"` // RFC 3339
	Last     string `json:"last_at"`
}

// groupOf is the group of a message.
func groupOf(queue string, r *store.Rejected) RejectedGroup {
	reason := string(fingerprint.Of(r.UID, "", r.Reason))
	return RejectedGroup{store.ShortID(strings.Join([]string{queue, r.Source, reason}, "\n")), queue, r.Source, reason, 1, r.At, r.At}
}

// Group is the id of the group of the message.
func (r *Rejected) Group() string { return groupOf(r.Queue, &r.Rejected).ID }

// GroupRejected groups messages, the largest group first.
func GroupRejected(all []Rejected) (groups []RejectedGroup) {
	for i := range all {
		one := groupOf(all[i].Queue, &all[i].Rejected)
		place := slices.IndexFunc(groups, func(g RejectedGroup) bool { return g.ID == one.ID })
		if place < 0 {
			groups = append(groups, one)
			continue
		}
		g := &groups[place]
		g.Messages, g.First, g.Last = g.Messages+1, min(g.First, one.First), max(g.Last, one.Last)
	}
	slices.SortStableFunc(groups, func(a, b RejectedGroup) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), strings.Compare(b.Last, a.Last))
	})
	return groups
}
