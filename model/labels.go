package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// MaxLabels is how many labels a model may have.
const MaxLabels = 8

var (
	labelName  = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,31}$`)
	labelValue = regexp.MustCompile(`^[A-Za-z0-9_.:/@+-]{1,60}$`)
)

// ValidateLabel accepts a label: a name of 1 to 32 small letters, digits and _.- that begins with a letter, and a value of 1 to 60 letters,
// digits and _.:/@+- , so that both can stand in a Redis key and in a selector without being anything else.
func ValidateLabel(name, value string) error {
	field := "labels." + document.Shorten(name, document.MaxFound)
	switch {
	case !labelName.MatchString(name):
		return document.Refuse(field, "a name of 1-32 small letters, digits or _.- (first a letter)", document.Found(name))
	case slices.Contains(reservedNames, name):
		return document.Refuse(field, "a name other than "+strings.Join(reservedNames, ", "), "one that means something else in a selector")
	case !labelValue.MatchString(value):
		return document.Refuse(field, "a value of 1-60 letters, digits or _.:/@+-", document.Found(value))
	default:
		return nil
	}
}

func readLabels(doc document.Object) (map[string]string, error) {
	value := doc.Fields["labels"]
	if value == nil {
		return nil, nil
	}
	fields, is := value.(map[string]any)
	if !is {
		return nil, document.Refuse("labels", "an object such as {tenant: t1}", document.Found(value))
	}
	if len(fields) > MaxLabels {
		return nil, document.Refuse("labels", fmt.Sprintf("at most %d", MaxLabels), fmt.Sprint(len(fields)))
	}
	var labels map[string]string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, _, err := document.Object{Fields: fields}.Scalar(name)
		if err != nil {
			return nil, document.Place(err, "labels")
		}
		if err := ValidateLabel(name, text); err != nil {
			return nil, err
		}
		if labels == nil {
			labels = make(map[string]string, len(fields))
		}
		labels[name] = text
	}
	return labels, nil
}

// LabelTerms are labels as a selector and the keys of their sets write them, such as tenant=t1, sorted.
func LabelTerms(labels map[string]string) []string {
	terms := make([]string, 0, len(labels))
	for name, value := range labels {
		terms = append(terms, name+"="+value)
	}
	slices.Sort(terms)
	return terms
}
