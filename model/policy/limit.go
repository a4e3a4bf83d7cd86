package policy

import (
	"fmt"

	"github.com/refreshd/refreshd/model/document"
)

// Limit bounds what models with the same key may do at the same time. It says Running or Rate, or both.
type Limit struct {
	Key     Key
	Running int  // attempts at a time, 1 to 100,000; 0: any number
	Rate    Rate // of starts; the zero value: any
}

// Bounds of limits.
const (
	maxLimits  = 4
	maxRunning = 100_000
)

// limitDocument is the canonical form of a limit.
type limitDocument struct {
	Key     string `json:"key"`
	Running int    `json:"running,omitempty"`
	Rate    string `json:"rate,omitempty"`
}

// limitAliases are other names for the fields of a limit.
var limitAliases = map[string]string{"concurrency": "running"}

func (p *Policy) limitsDocument() []limitDocument {
	limits := make([]limitDocument, len(p.Limits))
	for i, limit := range p.Limits {
		limits[i] = limitDocument{limit.Key.String(), limit.Running, limit.Rate.String()}
	}
	return limits
}

func (p *Policy) readLimits(doc document.Object) error {
	value := doc.Fields["limits"]
	if value == nil || saysNone(doc, "limits") {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		return document.Refuse("limits", `a list such as [{key: "{host(input_url)}", running: 4}]`, document.Found(value))
	}
	if len(list) > maxLimits {
		return document.Refuse("limits", fmt.Sprintf("at most %d limits", maxLimits), fmt.Sprint(len(list)))
	}
	for i, item := range list {
		limit, err := ParseLimit(item)
		if err == nil {
			err = p.checkName(limit.Key)
		}
		if err != nil {
			return document.Place(err, fmt.Sprintf("limits[%d]", i))
		}
		p.Limits = append(p.Limits, limit)
	}
	return nil
}

// checkName refuses a key of the same name as an earlier limit: a model would take the same key twice.
func (p *Policy) checkName(key Key) error {
	for _, limit := range p.Limits {
		if limit.Key.Name() == key.Name() {
			return document.Refuse("key", "one limit for each key", fmt.Sprintf("%s after %s, and both count by %s", key, limit.Key, key.Name()))
		}
	}
	return nil
}

// ParseLimit reads one limit from decoded JSON or YAML. A refusal is a *document.Error.
func ParseLimit(value any) (limit Limit, err error) {
	doc, err := document.ReadObject(resolveNames(value, limitAliases), "key", "running", "rate")
	if err != nil {
		return limit, err
	}
	if limit.Key, err = readKey(doc); err != nil {
		return limit, err
	}
	if limit.Running, _, err = doc.Int("running", 1, maxRunning); err != nil {
		return limit, err
	}
	rate, err := doc.Text("rate")
	if err != nil {
		return limit, err
	}
	if rate != "" {
		if limit.Rate, err = ParseRate(rate); err != nil {
			return limit, document.Place(err, "rate")
		}
	}
	if limit.Running == 0 && rate == "" {
		return limit, document.Refuse("", "running or rate, or both", "neither")
	}
	return limit, nil
}

func readKey(doc document.Object) (Key, error) {
	text, err := doc.Text("key")
	if err != nil {
		return Key{}, err
	}
	key, err := ParseKey(text)
	return key, document.Place(err, "key")
}
