package operate

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

const (
	maxExamples = 10
	maxHinted   = 20_000 // models that a hint is worth
)

// Selected are the models that a selector picks now.
type Selected struct {
	Selector string   `json:"selector"`
	Models   int      `json:"models"`
	Examples []string `json:"examples"` // at most ten uids
	Most     bool     `json:"-"`        // so many at most: they were not looked at
}

// String is how many they are, in words.
func (s *Selected) String() string {
	return map[bool]string{true: "at most "}[s.Most] + words.Count(s.Models, "model", "models")
}

// Select counts the models that a selector picks. With brief it reads few models: if the selector may pick more, it returns their number as a bound.
func (o Operator) Select(ctx context.Context, selector string, brief bool) (found Selected, err error) {
	picks, err := model.ParseSelector(selector)
	if err != nil {
		return found, refused(err)
	}
	found.Selector = picks.String()
	may := 0 // be picked
	visit := func(one *store.Record) error {
		if found.Models++; len(found.Examples) < maxExamples {
			found.Examples = append(found.Examples, one.UID)
		}
		return nil
	}
	err = o.Queue.Each(func(part *store.Store) error {
		if !brief {
			return part.Report().EachPicked(ctx, picks, visit)
		}
		some, err := part.Report().FewPicked(ctx, picks, mostAsked, visit)
		may += some
		return err
	})
	if may > mostAsked {
		found.Models, found.Examples, found.Most = may, nil, true
	}
	slices.Sort(found.Examples)
	return found, err
}

// Expect refuses a selector unless it picks so many models now.
func Expect(ctx context.Context, o Operator, selector string, models int) error {
	found, err := o.Select(ctx, selector, false)
	if err != nil || found.Models == models {
		return err
	}
	text := found.String()
	if found.Models == 0 {
		text, err = NoMatch(ctx, o, selector)
	}
	if err == nil {
		err = refuse("selector", words.Count(models, "model", "models"), text)
	}
	return err
}

// NoMatch is a hint for people when a selector picks no model now, with the label that is most like one of its own. Empty: it picks some.
func NoMatch(ctx context.Context, o Operator, selector string) (hint string, err error) {
	picks, err := model.ParseSelector(selector)
	if err != nil || picks.All() {
		return "", refused(err)
	}
	matches := false
	err = o.Queue.Each(func(part *store.Store) error {
		some, err := store.PicksAny(ctx, part.Report(), picks, maxHinted)
		matches = matches || some
		return err
	})
	if err != nil || matches {
		return "", err
	}
	hint = fmt.Sprintf("%s matches 0 models now", picks)
	labels, err := o.Queue.Report().SampleLabels(ctx)
	if near := nearestLabel(picks, labels); near != "" {
		hint += "; did you mean " + near + "?"
	}
	return hint, err
}

// nearestLabel is a name or a term of known labels that is like one which a selector fixes; empty: none, or all are known.
func nearestLabel(picks model.Selector, known map[string][]string) string {
	for _, name := range picks.Labels() {
		values, is := known[name]
		if host, _, err := net.SplitHostPort(picks.Only(name)[0]); name == "host" && err == nil {
			return name + "=" + host
		}
		if !is {
			return words.NearestWord(name, slices.Sorted(maps.Keys(known)))
		}
		for _, value := range picks.Only(name) {
			if near := words.NearestWord(value, values); near != "" && !slices.Contains(values, value) {
				return name + "=" + near
			}
		}
	}
	return ""
}
