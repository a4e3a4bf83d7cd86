package policy

import (
	"cmp"
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
	groupTimeout: {ReasonTimeout, "TimeoutError", errorSilent},

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

func (c *Circuit) document() any {
	return struct {
		Key       string   `json:"key"`
		OpenAfter string   `json:"open_after"`
		On        []string `json:"on,omitempty"`
		Probe     string   `json:"probe"`
	}{c.Key.String(), fmt.Sprintf("%d of %d", c.Failures, c.Of), c.On, document.FormatDuration(c.Probe)}
}

func (p *Policy) readCircuit(doc *document.Reader) {
	if scope := doc.OneOf("retry_after_scope", scopeAuto, scopeAuto, string(ScopeModel), string(ScopeKey)); scope != scopeAuto {
		p.RetryAfterScope = RetryAfterScope(scope)
	}
	if most := doc.LengthWithin("max_retry_after", time.Second, 365*24*time.Hour); most != DefaultMaxRetryAfter {
		p.MaxRetryAfter = most
	}
	if doc.Fields["circuit"] != nil && !saysNone(doc, "circuit") {
		circuit, err := parseCircuit(doc.Fields["circuit"])
		doc.Fail(document.Place(err, "circuit"))
		p.Circuit = circuit
	}
}

func parseCircuit(value any) (*Circuit, error) {
	doc := document.Read(value, "key", "open_after", "on", "probe")
	c := &Circuit{Key: readKey(doc)}
	if parts := failuresOf.FindStringSubmatch(doc.Text("open_after")); parts != nil {
		c.Failures, _ = strconv.Atoi(parts[1]) // three digits
		c.Of, _ = strconv.Atoi(parts[2])
	}
	doc.Require(c.Failures >= 1 && c.Of >= c.Failures && c.Of <= maxCircuitOf, "open_after",
		fmt.Sprintf(`a number of failures of a number of attempts, up to %d, such as "5 of 10"`, maxCircuitOf))
	c.On = readFailures(doc)
	c.Probe = cmp.Or(doc.LengthWithin("probe", minProbe, maxProbe), DefaultProbe)
	return c, doc.Err()
}

func readFailures(doc *document.Reader) []string {
	value := doc.Fields["on"]
	list, ok := value.([]any)
	switch {
	case value == nil:
		return nil
	case !ok:
		list = []any{value}
	case len(list) == 0 || len(list) > maxClasses:
		doc.Refuse("on", fmt.Sprintf("1 to %d error types, or no field for all failures", maxClasses), fmt.Sprint(len(list)))
		return nil
	}
	types := make([]string, len(list))
	for i, item := range list {
		text, ok := document.ScalarText(item)
		if !ok || item == nil || !isErrorType(text) {
			doc.Refuse(fmt.Sprintf("on[%d]", i), wantErrorType, document.Found(item))
		}
		if class := statusClass.FindStringSubmatch(text); class != nil {
			text = statusPrefix + class[1] + "xx"
		}
		types[i] = statusType(text)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

var failuresOf = regexp.MustCompile(`^ *(\d{1,3}) +of +(\d{1,3}) *$`)
