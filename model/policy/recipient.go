package policy

import (
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Recipient is who gets e-mail about a model: one of an address, a field of its payload that holds one, and a label that does. It is
// comparable; the zero value is nobody.
type Recipient struct {
	Address, Payload, Label string
}

// ReadRecipient reads a recipient: an address, {payload: FIELD}, {label: NAME} or none. A refusal is a *document.Error without a field.
func ReadRecipient(value any) (Recipient, error) {
	if text, ok := value.(string); ok {
		if strings.EqualFold(strings.TrimSpace(text), none) {
			return Recipient{}, nil
		}
		if address, ok := ParseAddress(text); ok {
			return Recipient{Address: address}, nil
		}
	}
	fields, ok := value.(map[string]any)
	payload, isPayload := fields["payload"].(string)
	label, isLabel := fields["label"].(string)
	switch {
	case !ok || len(fields) != 1:
	case isPayload && recipientField.MatchString(payload):
		return Recipient{Payload: payload}, nil
	case isLabel && recipientLabel.MatchString(label):
		return Recipient{Label: label}, nil
	}
	return Recipient{}, document.Refuse("", "an e-mail address, {payload: FIELD}, {label: NAME} or none", document.Found(value))
}

var (
	recipientField = regexp.MustCompile(`^` + fieldPattern + `$`)
	recipientLabel = regexp.MustCompile(`^` + labelPattern + `$`)
)

const maxAddress = 254

// plainAddress allows nothing that could end a header or a command of SMTP.
var plainAddress = regexp.MustCompile(`^` + atoms + `(?:\.` + atoms + `)*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$`)

const atoms = `[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+`

// ParseAddress reads one e-mail address in ASCII, without a name beside it; false: it is none.
func ParseAddress(text string) (address string, valid bool) {
	text = strings.TrimSpace(text)
	if len(text) > maxAddress || !plainAddress.MatchString(text) {
		return "", false
	}
	return text, true
}

func (r Recipient) document() any {
	switch {
	case r.Payload != "":
		return map[string]string{"payload": r.Payload}
	case r.Label != "":
		return map[string]string{"label": r.Label}
	case r.Address != "":
		return r.Address
	}
	return none
}

const maxFailingFrom = 1000
