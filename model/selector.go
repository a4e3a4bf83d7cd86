package model

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// Selector picks models: those for which all of its terms hold. One without terms picks all.
type Selector struct {
	terms []term // in their order, each once
}

type term struct {
	name   string
	not    bool
	values []string // sorted, each once
}

// The names of a selector that are no labels. A label cannot be called like that.
const (
	SelectStatus  = "status"  // the status of the model, see SelectStatuses
	SelectPolicy  = "policy"  // the name of its policy
	SelectUID     = "uid"     // with * for any text and ? for any one character
	SelectError   = "error"   // the fingerprint of its failure
	SelectWaits   = "waits"   // the blocker that it is parked by, or the kind of it
	SelectKey     = "key"     // a key of its limits and circuit, such as host=example.com
	SelectCircuit = "circuit" // the key of its circuit
)

var reservedNames = []string{SelectError, SelectPolicy, SelectStatus, SelectUID, SelectWaits}

// Statuses that only a selector knows.
const (
	// StatusRunning is queued or processing.
	StatusRunning Status = "running"
	// StatusFailing: has failed since its last success, whatever it is doing. Such a model has another status besides.
	StatusFailing Status = "failing"
	// StatusFresh, StatusNever, StatusLate and StatusStale are the freshness, likewise.
	StatusFresh Status = "fresh"
	StatusNever Status = "never"
	StatusLate  Status = "late"
	StatusStale Status = "stale"
)

// SelectStatuses are the values of `status` in a selector.
var SelectStatuses = []string{
	string(StatusDisabled), string(StatusScheduled), string(StatusDue), string(StatusQueued), string(StatusProcessing), string(StatusRunning),
	string(StatusFinished), string(StatusParked), string(StatusFailing), string(StatusFresh), string(StatusNever), string(StatusLate), string(StatusStale),
	string(StatusBroken),
}

const (
	maxSelector = 1000 // bytes
	maxTerms    = 20
)

var (
	uidGlob      = regexp.MustCompile(`^[A-Za-z0-9_.:@/+=~*?-]{1,200}$`)
	termOperator = regexp.MustCompile(`!?=`)
)

// ParseSelector reads a selector such as "tenant=t1,status=failing|due,policy!=daily,uid=tbl_*": all terms hold; | separates alternatives, !=
// excludes them. An empty text picks all models. An error names the term.
func ParseSelector(text string) (Selector, error) {
	var s Selector
	if len(text) > maxSelector {
		return s, document.Refuse("selector", fmt.Sprintf("at most %d bytes", maxSelector), fmt.Sprintf("%d", len(text)))
	}
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	for _, part := range strings.Split(text, ",") {
		operator := termOperator.FindStringIndex(part)
		if operator == nil {
			want := `terms such as "tenant=t1" or "status!=failing" with commas between them`
			return Selector{}, document.Refuse("selector", want, document.Found(strings.TrimSpace(part)))
		}
		t := term{name: strings.TrimSpace(part[:operator[0]]), not: part[operator[0]] == '!', values: strings.Split(part[operator[1]:], "|")}
		for i, value := range t.values {
			t.values[i] = strings.TrimSpace(value)
		}
		slices.Sort(t.values)
		t.values = slices.Compact(t.values)
		s.terms = append(s.terms, t)
	}
	slices.SortFunc(s.terms, term.compare)
	s.terms = slices.CompactFunc(s.terms, func(a, b term) bool { return a.compare(b) == 0 })
	return s, s.Validate()
}

func (t term) compare(other term) int {
	return cmp.Or(cmp.Compare(t.name, other.name), cmp.Compare(t.operator(), other.operator()), slices.Compare(t.values, other.values))
}

func (t term) operator() string {
	if t.not {
		return "!="
	}
	return "="
}

func (t term) String() string { return t.name + t.operator() + strings.Join(t.values, "|") }

// String is the canonical text of the selector: two that pick the same by the same terms have the same. Empty: it picks all models.
func (s Selector) String() string {
	texts := make([]string, len(s.terms))
	for i, t := range s.terms {
		texts[i] = t.String()
	}
	return strings.Join(texts, ",")
}

// MarshalText is String, for JSON.
func (s Selector) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// All reports whether the selector picks all models.
func (s Selector) All() bool { return len(s.terms) == 0 }

// Only returns the values under a name; each picked model must have one of them. The shortest of several lists. nil: any value.
func (s Selector) Only(name string) (values []string) {
	for _, t := range s.terms {
		if t.name == name && !t.not && (values == nil || len(t.values) < len(values)) {
			values = t.values
		}
	}
	return values
}

// Terms are Only of a label, as the keys of its sets write them: a host also as it is stored.
func (s Selector) Terms(label string) (terms []string) {
	for _, value := range s.Only(label) {
		host := policy.Host(value)
		if isLabelValue(value) {
			terms = append(terms, label+"="+value)
		}
		if label == LabelHost && isHost(host) && !slices.Contains(terms, label+"="+host) {
			terms = append(terms, label+"="+host)
		}
	}
	return terms
}

// Labels returns the names of labels that the selector fixes, in their order; see Only.
func (s Selector) Labels() (names []string) {
	for _, t := range s.terms {
		keys := slices.ContainsFunc(t.values, func(value string) bool { return isKey(t.name, value) })
		if !t.not && !keys && !slices.Contains(reservedNames, t.name) {
			names = append(names, t.name)
		}
	}
	return slices.Compact(names)
}

// AsksQueued reports whether the selector needs to know if an attempt is in the input list.
func (s Selector) AsksQueued() bool {
	return slices.ContainsFunc(s.terms, func(t term) bool {
		return t.name == SelectStatus && (slices.Contains(t.values, string(StatusQueued)) != slices.Contains(t.values, string(StatusProcessing)))
	})
}

// Validate refuses meaningless selectors. An error names the term.
func (s Selector) Validate() error {
	if len(s.terms) > maxTerms {
		return document.Refuse("selector", fmt.Sprintf("at most %d terms", maxTerms), fmt.Sprintf("%d", len(s.terms)))
	}
	for i, t := range s.terms {
		for _, value := range t.values {
			if err := t.check(value); err != nil {
				return document.Place(err, "selector")
			}
		}
		for _, other := range s.terms[:i] {
			if err := t.contradicts(other); err != nil {
				return document.Place(err, "selector")
			}
		}
	}
	return nil
}

// isKey reports whether a value of a term is a key, which no label is: those of that name have no =.
func isKey(name, value string) bool {
	return (name == SelectKey || name == SelectCircuit) && strings.Contains(value, "=")
}

func (t term) check(value string) error {
	switch {
	case t.name == SelectStatus && !slices.Contains(SelectStatuses, value):
		return document.Refuse(SelectStatus, "one of "+strings.Join(SelectStatuses, ", "), foundNear(value, SelectStatuses))
	case t.name == SelectError:
		return fingerprint.ValidateID(value)
	case t.name == SelectUID && !uidGlob.MatchString(value):
		return document.Refuse(t.name, "a uid, with * for any text and ? for any one character", document.Found(value))
	case t.name == SelectWaits && !slices.Contains(BlockerKinds, Blocker(value).Kind()):
		want := "one of " + strings.Join(BlockerKinds, ", ") + ", or a blocker such as limit:host=example.com"
		return document.Refuse(t.name, want, foundNear(Blocker(value).Kind(), BlockerKinds))
	case t.name == SelectPolicy && !document.IsUID(value):
		return document.Refuse(t.name, "the name of a policy", document.Found(value))
	case isKey(t.name, value) && document.IsUID(value):
		return nil
	case slices.Contains(reservedNames, t.name):
		return nil
	case t.name == LabelHost && isHost(policy.Host(value)):
		return nil
	case t.name == LabelHost && !isLabelValue(value):
		return document.Refuse(t.name, "a host such as example.com, without a port, of at most 60 bytes", document.Found(value))
	case !isLabelName(t.name):
		return document.Refuse("", "status, policy, uid, waits, key, circuit or the name of a label (a-z first, then at most 31 of a-z, 0-9 and _.-)", document.Found(t.name))
	case !isLabelValue(value) && (t.name == SelectKey || t.name == SelectCircuit):
		return document.Refuse(t.name, "a key of limits and circuits such as host=example.com, or a label", document.Found(value))
	case !isLabelValue(value):
		return document.Refuse(t.name, "a label: 1-60 letters, digits or _.:/@+-", document.Found(value))
	}
	return nil
}

func foundNear(value string, known []string) string {
	if near := words.NearestWord(value, known); near != "" {
		return document.Found(value) + "; did you mean " + near + "?"
	}
	return document.Found(value)
}

// contradicts refuses two values where a model has only one.
func (t term) contradicts(other term) error {
	single := t.name != SelectStatus && t.name != SelectUID && t.name != SelectWaits && t.name != SelectKey
	if !single || t.name != other.name || t.not || other.not {
		return nil
	}
	if slices.ContainsFunc(t.values, func(value string) bool { return slices.Contains(other.values, value) }) {
		return nil
	}
	want := fmt.Sprintf("%q for one or the other", t.name+"="+strings.Join(slices.Concat(other.values, t.values), "|"))
	return document.Refuse(t.name, want, fmt.Sprintf("%q, which no model has", other.String()+","+t.String()))
}

// Matches reports whether the selector picks a model of this status. Unless AsksQueued, queued and processing may be confused.
func (s Selector) Matches(m *Model, status Status) bool {
	return !slices.ContainsFunc(s.terms, func(t term) bool {
		has := slices.ContainsFunc(t.values, func(value string) bool { return m.has(t.name, value, status) })
		return has == t.not
	})
}

func (m *Model) has(name, value string, status Status) bool {
	switch name {
	case SelectStatus:
		switch wanted := Status(value); wanted {
		case StatusRunning:
			return m.Running()
		case StatusFailing:
			return !m.FailingSince.IsZero()
		case StatusFresh, StatusNever, StatusLate, StatusStale:
			return m.Freshness == Freshness(wanted)
		default:
			return wanted == status
		}
	case SelectPolicy:
		return m.PolicyKey() == value
	case SelectError:
		return m.FingerprintID == value
	case SelectUID:
		return matchGlob(value, m.UID)
	case SelectKey, SelectCircuit:
		if name == SelectKey && isKey(name, value) {
			return m.counts(value)
		}
		return m.Labels[name] == value || isKey(name, value) && m.CircuitKey() == value
	case SelectWaits:
		return string(m.ParkedBy) == value || m.ParkedBy.Kind() == value
	case LabelHost:
		label, host := m.Labels[name], policy.Host(value)
		return label == value || host != "" && (label == host || m.Host == host)
	default:
		return m.Labels[name] == value
	}
}

// LabelHost is the label that a model with an input_url has unless its definition names one.
const LabelHost = "host"

// DeriveHost sets the Host of a model. It is stored as a label, so a label that says the same is none of the definition, nor is one that says what the
// host was before, which somebody has read and saved again. It needs the payload.
func DeriveHost(m *Model, before ...string) {
	label := m.Labels[LabelHost]
	m.Host = ""
	if label == "" {
		m.Host = InputHost(m)
		return
	}
	without := *m
	without.Labels = nil
	if host := InputHost(&without); label == host || slices.Contains(before, label) {
		m.Host, m.Labels = host, maps.Clone(m.Labels)
		if delete(m.Labels, LabelHost); len(m.Labels) == 0 {
			m.Labels = nil
		}
	}
}

// AllLabels are the labels of a model with its host.
func AllLabels(m *Model) map[string]string {
	if m.Host == "" {
		return m.Labels
	}
	all := map[string]string{LabelHost: m.Host}
	maps.Copy(all, m.Labels)
	return all
}

var inputHost, _ = policy.ParseKey("{host(input_url)}")

// InputHost is what the Host of a model must be. It needs the payload.
func InputHost(m *Model) string {
	if m.Labels[LabelHost] != "" || !strings.Contains(m.Payload, `"input_url"`) { // to look through a long payload is faster than to read it
		return ""
	}
	_, host, _ := strings.Cut(inputHost.Of(m.Payload, nil, ""), "=")
	if !isHost(host) {
		return ""
	}
	return host
}

// isHost accepts hosts that a label can say.
func isHost(host string) bool { return isLabelValue(host) && host == policy.Host(host) }

// counts reports whether a limit or the circuit of the model counts by a key such as host=example.com. The host of its input_url counts in any case, as
// failures are grouped by it. It needs the payload.
func (m *Model) counts(key string) bool {
	keys := []policy.Key{inputHost}
	for _, limit := range m.Policy.Limits {
		keys = append(keys, limit.Key)
	}
	return m.CircuitKey() == key || slices.ContainsFunc(keys, func(one policy.Key) bool { return one.Of(m.Payload, m.Labels, m.PolicyKey()) == key })
}

// slashes would end the star of path.Match. No uid has a space.
var slashes = strings.NewReplacer("/", " ")

// matchGlob knows * for any text and ? for any one character.
func matchGlob(pattern, text string) bool {
	matches, err := path.Match(slashes.Replace(pattern), slashes.Replace(text))
	return matches && err == nil
}
