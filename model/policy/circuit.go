package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Circuit stops the models of a key when Failures of the last Of attempts of that key have failed. It is immutable.
type Circuit struct {
	Key          Key
	Failures, Of int           // 1 <= Failures <= Of <= 100
	On           []string      // error types that count, and groups of them, sorted; nil: every failure counts
	Probe        time.Duration // from the opening to an attempt that may close it, 1 second to 1 day
}

const (
	maxCircuitOf = 100
	minProbe     = time.Second
	maxProbe     = 24 * time.Hour
)

// DefaultProbe is the probe of a circuit that names none.
const DefaultProbe = 5 * time.Minute

const (
	groupNetwork = "network"
	groupTimeout = "timeout"
)

// groups are the error types of each group, of our workers and of others. The group timeout is about deadlines.
var groups = map[string][]string{
	groupNetwork: {groupNetwork, "stalled", "too_slow", "truncated", "NetworkError"},
	groupTimeout: {ReasonTimeout, "TimeoutError"},

	permanentErrors: permanentTypes,
}

var (
	statusCode  = regexp.MustCompile(`^[1-5][0-9][0-9]$`)
	statusClass = regexp.MustCompile(`^(?:http_)?([1-5])xx$`)
)

const statusPrefix = "http_"

func statusType(text string) string {
	if statusCode.MatchString(text) {
		return statusPrefix + text
	}
	return text
}

// Counts reports whether a failure of an error type counts for the circuit.
func (c *Circuit) Counts(errorType string) bool {
	if c.On == nil {
		return true
	}
	errorType = statusType(errorType)
	return slices.ContainsFunc(c.On, func(on string) bool {
		if class, ok := strings.CutSuffix(on, "xx"); ok && statusClass.MatchString(on) {
			code, _ := strings.CutPrefix(errorType, statusPrefix)
			return statusCode.MatchString(code) && strings.HasPrefix(errorType, class)
		}
		return on == errorType || slices.Contains(groups[on], errorType)
	})
}

func (p *Policy) readCircuit(doc document.Object) (err error) {
	scope, err := doc.OneOf("retry_after_scope", scopeAuto, scopeAuto, string(ScopeModel), string(ScopeKey))
	if scope != scopeAuto {
		p.RetryAfterScope = RetryAfterScope(scope)
	}
	if err != nil || doc.Fields["circuit"] == nil || saysNone(doc, "circuit") {
		return err
	}
	p.Circuit, err = parseCircuit(doc.Fields["circuit"])
	return document.Place(err, "circuit")
}

func parseCircuit(value any) (*Circuit, error) {
	doc, err := document.ReadObject(value, "key", "open_after", "on", "probe")
	if err != nil {
		return nil, err
	}
	c := &Circuit{}
	if c.Key, err = readKey(doc); err != nil {
		return nil, err
	}
	text, err := doc.Text("open_after")
	if err != nil {
		return nil, err
	}
	if parts := failuresOf.FindStringSubmatch(text); parts != nil {
		c.Failures, _ = strconv.Atoi(parts[1]) // three digits
		c.Of, _ = strconv.Atoi(parts[2])
	}
	if c.Failures < 1 || c.Of < c.Failures || c.Of > maxCircuitOf {
		want := fmt.Sprintf(`a number of failures of a number of attempts, up to %d, such as "5 of 10"`, maxCircuitOf)
		return nil, document.Refuse("open_after", want, document.Found(doc.Fields["open_after"]))
	}
	if c.On, err = readFailures(doc.Fields["on"]); err != nil {
		return nil, err
	}
	if c.Probe = DefaultProbe; doc.Fields["probe"] != nil {
		c.Probe, err = lengthWithin(doc, "probe", minProbe, maxProbe)
	}
	return c, err
}

func readFailures(value any) ([]string, error) {
	list, ok := value.([]any)
	switch {
	case value == nil:
		return nil, nil
	case !ok:
		list = []any{value}
	case len(list) == 0 || len(list) > maxClasses:
		return nil, document.Refuse("on", fmt.Sprintf("1 to %d error types, or no field for all failures", maxClasses), fmt.Sprint(len(list)))
	}
	types := make([]string, len(list))
	for i, item := range list {
		text, ok := document.ScalarText(item)
		if !ok || item == nil || !isErrorType(text) {
			return nil, document.Refuse(fmt.Sprintf("on[%d]", i), wantErrorType, document.Found(item))
		}
		if class := statusClass.FindStringSubmatch(text); class != nil {
			text = statusPrefix + class[1] + "xx"
		}
		types[i] = statusType(text)
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

var failuresOf = regexp.MustCompile(`^ *(\d{1,3}) +of +(\d{1,3}) *$`)
