package model

import (
	"encoding/json"

	"github.com/refreshd/refreshd/model/policy"
)

// AddressOf is the e-mail address of a recipient, as far as this model is concerned; empty: it names none, or none that is valid.
func (m *Model) AddressOf(to policy.Recipient) string {
	text := to.Address
	switch {
	case to.Label != "":
		text = m.Labels[to.Label]
	case to.Payload != "":
		var payload map[string]any
		if json.Unmarshal([]byte(m.Payload), &payload) != nil {
			return ""
		}
		text, _ = payload[to.Payload].(string)
	}
	if address, valid := policy.ParseAddress(text); valid {
		return address
	}
	return ""
}
