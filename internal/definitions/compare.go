package definitions

import (
	"encoding/json"
	"maps"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// CompareModels lists the fields in which a definition differs from what is stored, field by field also in a payload and in a policy that a model
// has alone.
func CompareModels(before, after *model.Model) []Difference {
	return CompareFields("", definedFields(before), definedFields(after))
}

func definedFields(m *model.Model) map[string]any {
	fields, payload := map[string]any{"rrule": m.Rule, "timezone": m.Timezone, "dtstart": m.Dtstart, "policy": m.PolicyKey()}, map[string]any{}
	maps.DeleteFunc(fields, func(_ string, value any) bool { return value == "" })
	for name, value := range m.Labels {
		fields["labels."+name] = value
	}
	_ = json.Unmarshal([]byte(m.Payload), &payload) // what is stored by hand and no object differs in all fields
	for name, value := range payload {
		fields["payload."+name] = value
	}
	if policy.IsInline(m.PolicyName) {
		delete(fields, "policy")
		for name, value := range canonicalFields(m.Policy) {
			fields["policy."+name] = value
		}
		delete(fields, "policy.name") // a digest
	}
	return fields
}
