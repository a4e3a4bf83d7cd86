package store

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Rejected is one entry of <queue>:rejected.
type Rejected struct {
	At     string `json:"at"`
	Source string `json:"source"` // output or control
	// UID is the model that the message names; empty: it cannot be read.
	UID    string `json:"uid,omitempty"`
	Reason string `json:"reason"`
	Raw    string `json:"raw,omitempty"`
	// RawBase64 holds a message that is no UTF-8 text, byte for byte.
	RawBase64 string `json:"raw_base64,omitempty"`
	// Bytes is the size of a message that keeps only its beginning; empty: it is complete.
	Bytes string `json:"bytes,omitempty"`

	Stored string `json:"-"` // as the list has it; empty: it is not from there
}

// ID names the entry for people: it follows from its text. Two that are alike in all have one ID.
func (r *Rejected) ID() string { return ShortID(r.Stored) }

// Message returns the text of the sender, byte for byte; an error: not all of it is kept.
func (r *Rejected) Message() (string, error) {
	switch {
	case r.Source != sourceOutput && r.Source != SourceControl:
		return "", document.Refuse("source", sourceOutput+" or "+SourceControl, document.Found(r.Source))
	case r.Bytes != "":
		return "", document.Refuse("raw", "all "+r.Bytes+" bytes of the message", "only its beginning")
	case r.RawBase64 == "":
		return r.Raw, nil
	}
	raw, err := base64.StdEncoding.DecodeString(r.RawBase64)
	return string(raw), redis.Wrap(err, "read raw_base64")
}

// The lists that a rejected message may have come from.
const (
	sourceOutput  = "output"
	SourceControl = "control"
)

// maxRaw is how much of a message rejected keeps, in bytes: with the default cap of 1,000 messages it holds 16 MB of them at most.
const maxRaw = 16 << 10

// saidLog is the log in a message of a worker, even in half a one. It may hold secrets, so nobody keeps it.
var saidLog = regexp.MustCompile(`(?s)("log"\s*:\s*)"(?:[^"\\]|\\.)*(?:"|$)`)

// rejected is the entry for the rejected list; empty: the message is only counted.
func (i Item) rejected(now time.Time) string {
	if i.Reason == "" {
		return ""
	}
	entry := Rejected{At: model.FormatTime(now), Source: sourceOutput, Reason: i.Reason, Raw: i.Message.Raw()}
	if document.IsUID(i.UID) {
		entry.UID = i.UID
	}
	if i.Message.FromControl() {
		entry.Source = SourceControl
	} else {
		entry.Raw = saidLog.ReplaceAllString(entry.Raw, `$1""`)
	}
	if size, _, large := i.Message.Large(); large {
		entry.Bytes = size
	} else if len(entry.Raw) > maxRaw {
		entry.Raw, entry.Bytes = entry.Raw[:maxRaw], strconv.Itoa(len(entry.Raw))
	}
	if entry.Bytes != "" { // one that was cut may end within a character
		whole := strings.ToValidUTF8(entry.Raw, "")
		if len(entry.Raw)-len(whole) < utf8.UTFMax {
			entry.Raw = whole
		}
	}
	if !utf8.ValidString(entry.Raw) {
		entry.Raw, entry.RawBase64 = "", base64.StdEncoding.EncodeToString([]byte(entry.Raw))
	}
	text, _ := json.Marshal(entry) // texts only
	return string(text)
}

// ReadRejected reads an entry of the rejected list; unreadable fields are empty.
func ReadRejected(text string) (entry Rejected) {
	_ = json.Unmarshal([]byte(text), &entry)
	entry.Stored = text
	return entry
}

// ShortID names a text for people.
func ShortID(text string) string { return Digest(text)[:12] }
