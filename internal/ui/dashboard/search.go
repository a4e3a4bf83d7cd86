package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// reading is one meaning of a search: the models that a selector picks.
type reading struct {
	Selector string
	Count    int64 // unknown: it would take a walk

	about string // the models, as in "with tenant=t1"
	picks model.Selector
}

const unknown = -1

// String is as in "12 models with tenant=t1".
func (r reading) String() string {
	if r.Count == unknown {
		return "models " + r.about
	}
	return words.Count(int(r.Count), "model", "models") + " " + r.about
}

// vocabulary is what a text may mean in this queue only.
type vocabulary struct {
	stored bool             // it is the uid of a model
	labels map[string]int64 // models by terms such as tenant=t1 that have it as their value
	groups []operate.Failures
}

// maxFingerprints bounds those of one reading: a selector is at most 1,000 bytes.
const maxFingerprints = 50

// understand lists the meanings of a text, the likeliest first. A selector has no other.
func (v *vocabulary) understand(text string) (found []reading) {
	add := func(count int64, about, selector string) {
		picks, err := model.ParseSelector(selector)
		if err == nil && count != 0 {
			found = append(found, reading{picks.String(), count, about, picks})
		}
	}
	if terms := asSelector(text); terms != "" {
		add(unknown, "with "+terms, terms)
	}
	if v.stored {
		add(1, "called "+text, model.SelectUID+"="+text)
	}
	if _, err := model.ParseSelector(text); err == nil {
		return found
	}
	for _, term := range slices.Sorted(maps.Keys(v.labels)) {
		add(v.labels[term], "with "+term, term)
	}
	ids, sum, about, begins := []string{}, int64(0), "", regexp.MustCompile(`(?i)(^|[^\pL\pN])`+regexp.QuoteMeta(text))
	for i := range v.groups {
		if group := &v.groups[i]; begins.MatchString(group.Text+" "+group.Reason) && len(ids) < maxFingerprints {
			ids, sum, about = append(ids, group.ID), sum+group.Models, "failing with "+cmp.Or(group.Text, group.ID)
		}
	}
	if len(ids) > 1 {
		about = fmt.Sprintf("failing with %d fingerprints that contain %s", len(ids), text)
	}
	add(sum, about, model.SelectError+"="+strings.Join(ids, "|"))
	if document.IsUID(text) {
		add(unknown, "whose uid begins with "+text, model.SelectUID+"="+text+"*")
		add(unknown, "whose uid contains "+text, model.SelectUID+"=*"+text+"*")
	} else if strings.ContainsAny(text, "*?") && !strings.ContainsAny(text, "|,") {
		add(unknown, "whose uid is like "+text, model.SelectUID+"="+text)
	}
	if near := words.NearestWord(strings.TrimPrefix(strings.ToLower(text), "status="), model.SelectStatuses); near != "" && asSelector(text) == "" {
		add(unknown, "with status="+near, "status="+near)
	}
	return found
}

// asSelector returns the selector that a text is, or its words together, such as "failing tenant=t1"; empty: neither.
func asSelector(text string) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	for i, word := range fields {
		if word = strings.ToLower(word); slices.Contains(model.SelectStatuses, word) {
			fields[i] = model.SelectStatus + "=" + word
		}
	}
	for _, one := range []string{text, strings.Join(fields, ",")} {
		if picks, err := model.ParseSelector(one); err == nil {
			return picks.String()
		}
	}
	return ""
}

// readings reads the meanings of a text. The uid of a model leads to its page.
func (req *request) readings(ctx context.Context, text string, stats *report.Stats) (found []reading, err error) {
	v := &vocabulary{}
	if document.IsUID(text) {
		records, err := req.queue.Of(text).Load(ctx, []string{text})
		if err != nil {
			return nil, err
		}
		v.stored = records[text].Exists
	}
	if _, err := model.ParseSelector(text); err != nil {
		if v.stored {
			return nil, redirect(req.Link("model", "uid", text))
		}
		if v.labels, err = req.queue.Report().LabelCounts(ctx, text); err != nil {
			return nil, err
		}
		if stats.Failing > 0 {
			if v.groups, err = req.operator.Failures(ctx, operate.FailuresRequest{By: operate.ByFingerprint}); err != nil {
				return nil, err
			}
		}
	}
	return v.understand(text), nil
}
