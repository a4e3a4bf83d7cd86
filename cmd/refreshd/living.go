package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// livingView is who serves a queue, as -o json shows it. Workers are our pools: foreign ones give no sign of life.
type livingView struct {
	Dispatchers []memberView `json:"dispatchers"`
	Pollers     []memberView `json:"pollers"`
	Workers     []memberView `json:"workers"`
}

// memberView is one that gives signs of life, in one part of a queue.
type memberView struct {
	Name       string `json:"name"`
	Part       string `json:"part,omitempty"` // of a queue that has several
	LastSignAt string `json:"last_sign_at"`
	AgeMS      int64  `json:"age_ms"` // of that sign
	Lives      bool   `json:"lives"`  // false: it has been silent for longer than any settings allow, and is not forgotten yet
}

// readLiving reads who serves the parts of a queue.
func readLiving(ctx context.Context, queue *store.Queue) (livingView, error) {
	v := livingView{[]memberView{}, []memberView{}, []memberView{}} // null never
	err := queue.Each(func(part *store.Store) error {
		heartbeats, now, err := part.Report().Heartbeats(ctx)
		for _, h := range heartbeats {
			age := max(0, now.Sub(h.At))
			member := memberView{Name: h.Owner, LastSignAt: model.FormatTime(h.At), AgeMS: age.Milliseconds(), Lives: age <= model.LongestSilence}
			if len(queue.Parts) > 1 {
				member.Part = part.Keys.Queue()
			}
			members := v.of(h.Of)
			*members = append(*members, member)
		}
		return err
	})
	for _, party := range model.Roles {
		slices.SortFunc(*v.of(party), func(a, b memberView) int {
			return cmp.Or(cmp.Compare(a.AgeMS, b.AgeMS), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Part, b.Part))
		})
	}
	return v, err
}

func (v *livingView) of(party model.Role) *[]memberView {
	switch party {
	case model.RoleDispatcher:
		return &v.Dispatchers
	case model.RolePoller:
		return &v.Pollers
	default:
		return &v.Workers
	}
}

// mostNames is how many members of a party are named to people.
const mostNames = 4

// partyText tells people who of a party lives, the latest sign first.
func partyText(members []memberView, parts int) string {
	if len(members) == 0 {
		return "0  none is known"
	}
	living, served, names := 0, map[string]bool{}, make([]string, 0, mostNames)
	for _, m := range members {
		age := roughly(time.Duration(m.AgeMS)*time.Millisecond) + " ago"
		if m.Lives {
			living, served[m.Part] = living+1, true
		} else {
			age = "silent, " + age
		}
		if len(names) < mostNames {
			names = append(names, fmt.Sprintf("%s (%s)", m.Name, age))
		}
	}
	text := fmt.Sprint(living)
	if parts > 1 {
		text += fmt.Sprintf(" in %d of %d parts", len(served), parts)
	}
	text += "  " + strings.Join(names, ", ")
	if more := len(members) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
