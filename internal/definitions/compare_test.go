package definitions

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model"
)

// Somebody who edits a model and changes nothing must save what was there.
func TestADefinitionIsReadBackAsItWasWritten(t *testing.T) {
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"yes", "~", "1e3", "2026-01-31", "a: b", "- x", "a\nb\n", "#", " x ", "0x1F", "\u2028", "<<", "=", "!!int 1", "&a", "\t"}))
	var values func(depth int) *rapid.Generator[any]
	values = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), texts.AsAny(),
			rapid.Custom(func(r *rapid.T) any {
				return json.Number(rapid.SampledFrom([]string{"0", "-1", "12345678901234567890", "1.50", "1e3", "-2.5E-7"}).Draw(r, "number"))
			}),
		}
		if depth > 0 {
			kinds = append(kinds, rapid.MapOfN(texts, values(depth-1), 0, 3).AsAny(), rapid.SliceOfN(values(depth-1), 0, 3).AsAny())
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(r *rapid.T) {
		want, err := model.ParseDefinition(map[string]any{
			"uid": rapid.SampledFrom([]string{"a", "1", "null", "true", "1e3"}).Draw(r, "uid"), "payload": rapid.MapOfN(texts, values(2), 0, 4).Draw(r, "payload"),
			"rrule": "FREQ=DAILY", "timezone": "Europe/Berlin", "labels": map[string]any{"tenant": rapid.SampledFrom([]string{"t1", "007", "no"}).Draw(r, "label")},
		})
		if err != nil {
			r.Skip() // of no payload
		}
		var text strings.Builder
		must(t, WriteModel(&text, &model.Model{UID: want.UID, Payload: want.Payload, Rule: want.Rule, Timezone: want.Timezone, Labels: want.Labels}))
		must(t, ReadModels("your text", strings.NewReader(text.String()), formatYAML, func(m Model) error {
			if m.Err != nil || m.Definition.Payload != want.Payload || m.Definition.UID != want.UID || m.Definition.Rule != want.Rule || m.Definition.Labels["tenant"] != want.Labels["tenant"] {
				r.Fatalf("expected %+v, found %+v, %v, in\n%s", want, m.Definition, m.Err, text.String())
			}
			return nil
		}))
	})
}
