package policy

import (
	"maps"

	"github.com/refreshd/refreshd/model/document"
)

// chronosNames are the names of document 004 for what a policy says in its own words. Bare numbers of a delay are milliseconds
// there.
var chronosNames = []string{
	"maxRetries", "baseRetryDelay", "retryDelay", "maxRetryDelay", "retryStrategy", "useExponentialBackoff", "jitterEnabled", "jitterFactor",
}

// fromChronos rewrites a policy that uses names of document 004, and completes it with the defaults of that document (rules 2, 3,
// 6 and 7). Any other value passes unchanged. What cannot be read is left for the reader to refuse by its own name.
func fromChronos(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	found := false
	for _, name := range chronosNames {
		_, used := fields[name]
		found = found || used
	}
	if _, both := fields["retries"]; !found || both {
		return value // with both, the alias is an unknown field
	}
	fields = maps.Clone(fields)
	retries := map[string]any{}
	take := func(from string, to map[string]any, name string, convert func(any) any) {
		if value, used := fields[from]; used && to[name] == nil { // of two words for one thing the second is an unknown field
			to[name] = convert(value)
			delete(fields, from)
		}
	}
	same := func(value any) any { return value }
	take("maxRetries", retries, "count", same)
	take("baseRetryDelay", retries, "base", chronosDelay)
	take("retryDelay", retries, "base", chronosDelay)
	take("maxRetryDelay", retries, "cap", chronosDelay)
	take("retryStrategy", retries, "strategy", same)
	take("useExponentialBackoff", retries, "strategy", chronosBackoff)
	switchJitter(fields)
	take("jitterFactor", fields, "jitter", same)
	take("jitterEnabled", fields, "jitter", chronosDisabled)
	usual := map[string]any{"strategy": string(Exponential), "base": "1m", "cap": "1h", "count": 3}
	maps.Copy(usual, retries)
	fields["retries"] = usual
	if fields["never_retry"] == nil && fields["retry_on"] == nil {
		fields["never_retry"] = permanentErrors
	}
	return fields
}

// switchJitter applies jitterEnabled to jitterFactor.
func switchJitter(fields map[string]any) {
	switch {
	case fields["jitterEnabled"] == true:
		delete(fields, "jitterEnabled") // as always
	case fields["jitterEnabled"] == false && fields["jitter"] == nil:
		delete(fields, "jitterFactor")
	}
}

// chronosDelay reads a bare number as milliseconds.
func chronosDelay(value any) any {
	text, ok := document.ScalarText(value)
	if !ok {
		return value
	}
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			return value
		}
	}
	return text + "ms"
}

func chronosBackoff(value any) any {
	switch value {
	case true:
		return string(Exponential)
	case false:
		return string(Fixed)
	default:
		return value
	}
}

func chronosDisabled(value any) any {
	if value == false {
		return 0
	}
	return value
}
