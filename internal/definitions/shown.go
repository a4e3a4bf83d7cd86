package definitions

import (
	"maps"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Shown are the fields that `refreshd model get -o json`, or ls, shows beside the definition of a model. A document written by hand has none of
// them: they are refused there, as every unknown field is.
var Shown = []string{
	"status", "refresh_at", "refresh_why", "refresh_for", "not_before", "planned_at",
	"attempt_uid", "attempt_no", "started_at", "deadline_at", "processing_at", "worker", "again", "outdated",
	"refresh_disabled_until_update", "refresh_disabled_user_friendly_reason", "refresh_disabled_by", "refresh_disabled_who",
	"user_friendly_status", "progress", "last_success_at", "freshness", "stale_at", "fresh_since", "failing_since", "final_failure_at", "last_attempt_uid", "deferrals",
	"trying_since", "gives_up_at", "because", "last_reason", "total_retries", "successful_retries", "retried_cycles", "retry_success_rate",
	"phase", "parked_by", "parked_since", "reserved", "counted_by", inForce, "rev", "fault", "rejected", "missing",
}

// inForce is the field that shows the policy of a model, where policy is but its name.
const inForce = "policy_definition"

// signature are fields that are in what is shown of a model, all of them, and nowhere else.
var signature = []string{"status", "rev", inForce}

// definitionOf returns the definition alone of what is shown of a model, so that it can be saved again; any other value stays as it is.
func definitionOf(value any) (any, error) {
	fields, _ := value.(map[string]any)
	for _, name := range signature {
		if _, found := fields[name]; !found {
			return value, nil
		}
	}
	definition := maps.Clone(fields)
	for _, name := range Shown {
		delete(definition, name)
	}
	if name, _ := fields["policy"].(string); policy.IsInline(name) { // the name lives no longer than its last model
		own, err := policy.ParseStored(fields[inForce])
		if err != nil {
			return nil, document.Place(err, inForce)
		}
		definition["policy"] = canonicalFields(own)
	}
	return definition, nil
}
