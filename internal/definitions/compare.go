package definitions

import (
	"encoding/json"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// CompareModels lists the fields in which a definition differs from what is stored, field by field also in a payload and in a policy that a model
// has alone.
func CompareModels(before, after *model.Model) (changes []Difference) {
	differ := func(field, was, is string) {
		if was != is {
			changes = append(changes, Difference{Field: field, Old: textOrNil(was), New: textOrNil(is)})
		}
	}
	differ("rrule", before.Rule, after.Rule)
	differ("timezone", before.Timezone, after.Timezone)
	differ("dtstart", before.Dtstart, after.Dtstart)
	if policy.IsInline(before.PolicyName) && policy.IsInline(after.PolicyName) {
		for _, d := range Compare(before.Policy, after.Policy) {
			d.Field = "policy." + d.Field
			changes = append(changes, d)
		}
	} else {
		differ("policy", before.PolicyKey(), after.PolicyKey())
	}
	changes = append(changes, CompareFields("labels.", labelFields(before.Labels), labelFields(after.Labels))...)
	return append(changes, CompareFields("payload.", payloadFields(before.Payload), payloadFields(after.Payload))...)
}

func textOrNil(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func labelFields(of map[string]string) map[string]any {
	fields := make(map[string]any, len(of))
	for name, value := range of {
		fields[name] = value
	}
	return fields
}

func payloadFields(canonical string) (fields map[string]any) {
	_ = json.Unmarshal([]byte(canonical), &fields) // what is stored by hand and no object differs in all fields
	return fields
}
