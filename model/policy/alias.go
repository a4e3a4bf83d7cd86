package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

type alias struct {
	alias, name string
	inRetries   bool // name is a field of retries
	convert     func(any) any
}

// aliases are names of another scheduler, in the order in which they are read. Of two names for one thing the second is an unknown field.
var aliases = []alias{
	{"maxRetries", "count", true, nil},
	{"baseRetryDelay", "base", true, inMilliseconds},
	{"retryDelay", "base", true, inMilliseconds},
	{"maxRetryDelay", "cap", true, inMilliseconds},
	{"retryStrategy", "strategy", true, nil},
	{"useExponentialBackoff", "strategy", true, instead(map[any]any{true: string(Exponential), false: string(Fixed)})},
	{"jitterFactor", "jitter", false, nil},
	{"jitterEnabled", "jitter", false, instead(map[any]any{false: 0})},
}

var fieldAliases = map[string]string{"retry_intervals": "retries", "retry_strategy": "alignment", "circuit_breaker": "circuit"}

// ofSource reports whether retries are written as in the source documents. There a list that is used up ends in the final failure.
func ofSource(value any) bool {
	fields, _ := value.(map[string]any)
	rule, _ := fields["rrule"].(string)
	switch retries := fields["retries"].(type) {
	case nil:
		return fields["retry_intervals"] != nil
	case string:
		return true
	case map[string]any:
		return retries["strategy"] == strategySimple
	default:
		return strings.HasPrefix(rule, "RRULE:") && !strings.Contains(rule, "\n")
	}
}

var originAlignments = map[string]Alignment{
	"retry_align_planned": AlignPlanned,
	"retry_at":            UntilSuccess, "retry_until_success": UntilSuccess,
	"planned_at": PlannedOnly, "retry_until_planned": PlannedOnly,
	"retry_between_planned": BetweenPlanned,
}

// resolveNames rewrites other names of fields. Of two names for one thing the alias stays, and is an unknown field.
func resolveNames(value any, aliases map[string]string) any {
	fields, _ := value.(map[string]any)
	for alias, name := range aliases {
		given, used := fields[alias]
		if _, both := fields[name]; used && !both {
			fields = maps.Clone(fields)
			fields[name] = given
			delete(fields, alias)
			value = fields
		}
	}
	return value
}

var strategyAliases = map[string]string{
	"curvature": "factor", "max_delay": "cap", "max_retry": "count", "max_retries": "count",
}

const strategySimple = "simple"

// resolveStrategy rewrites other names. `simple` always waits its longest delay.
func resolveStrategy(fields map[string]any) map[string]any {
	fields = maps.Clone(resolveNames(fields, strategyAliases).(map[string]any))
	if fields["strategy"] != strategySimple {
		return fields
	}
	fields["strategy"] = string(Fixed)
	if longest, given := fields["cap"]; given && fields["base"] == nil {
		fields["base"] = longest
	}
	return fields
}

// resolveAliases rewrites a policy that uses aliases, and adds the defaults of the scheduler that they come from.
func resolveAliases(value any) any {
	fields, _ := value.(map[string]any)
	used := func(a alias) bool { _, used := fields[a.alias]; return used }
	if _, both := fields["retries"]; both || !slices.ContainsFunc(aliases, used) {
		return value // with both, the alias is an unknown field
	}
	fields = maps.Clone(fields)
	switch {
	case fields["jitterEnabled"] == true:
		delete(fields, "jitterEnabled") // as always
	case fields["jitterEnabled"] == false && fields["jitter"] == nil:
		delete(fields, "jitterFactor")
	}
	retries := map[string]any{}
	for _, a := range aliases {
		to := fields
		if a.inRetries {
			to = retries
		}
		if value, used := fields[a.alias]; used && to[a.name] == nil {
			if a.convert != nil {
				value = a.convert(value)
			}
			to[a.name] = value
			delete(fields, a.alias)
		}
	}
	defaults := map[string]any{"strategy": string(Exponential), "base": "1m", "cap": "1h", "count": 3}
	maps.Copy(defaults, retries)
	fields["retries"] = defaults
	if fields["never_retry"] == nil && fields["retry_on"] == nil {
		fields["never_retry"] = permanentErrors
	}
	if fields["on_exhausted"] == nil {
		fields["on_exhausted"] = string(GiveUp)
	}
	return fields
}

func inMilliseconds(value any) any {
	text, ok := document.ScalarText(value)
	if !ok || strings.Trim(text, "0123456789") != "" {
		return value
	}
	return text + "ms"
}

// instead replaces the value of each named flag.
func instead(of map[any]any) func(any) any {
	return func(value any) any {
		if flag, is := value.(bool); is && of[flag] != nil {
			return of[flag]
		}
		return value
	}
}
