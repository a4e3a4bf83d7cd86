package notifier

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

// Notice is an entry of the outbox: its fields, with its id and queue.
type Notice map[string]string

// The fields of every notice. The others are those of the entry.
const (
	fieldID    = "id"
	fieldQueue = "queue"
	fieldEvent = "event"
	fieldUID   = "uid"
	fieldKey   = "key"
	fieldAt    = "at"
	fieldLink  = "link" // of a model, if the notifier knows where the dashboard is
)

// noticeOf is the notice of an entry; dashboard is the address of the queue there, or empty.
func noticeOf(queue, dashboard string, entry store.OutboxEntry) Notice {
	n := make(Notice, len(entry.Fields)+3)
	maps.Copy(n, entry.Fields)
	n[fieldID], n[fieldQueue] = queue+"/"+entry.ID, queue
	if uid := n[fieldUID]; dashboard != "" && uid != "" {
		n[fieldLink] = dashboard + "/model?" + url.Values{"uid": {uid}}.Encode()
	}
	return n
}

func (n Notice) text() string {
	text, _ := json.Marshal(n) // texts only
	return string(text)
}

// clean is the notice for people: no value can end a line.
func (n Notice) clean() Notice {
	clean := make(Notice, len(n))
	for name, value := range n {
		clean[name] = document.OneLine(value)
	}
	return clean
}

// message is one notice for a recipient, or a digest of several. The same notices are the same message.
type message struct {
	at      time.Time
	address string // of the recipient within its channel; empty: the channel has one
	notices []Notice
	texts   []string // the same in JSON
}

func newMessage(address string, texts []string, at time.Time) message {
	m := message{at: at, address: address, texts: texts, notices: make([]Notice, len(texts))}
	for i, text := range texts {
		_ = json.Unmarshal([]byte(text), &m.notices[i]) // an unreadable one has no fields
	}
	return m
}

// id is the same in every try, so that a recipient can recognize a repetition.
func (m *message) id() string {
	hash := sha256.New()
	for _, notice := range m.notices {
		_, _ = hash.Write([]byte(notice[fieldID] + "\n")) // a hash takes everything
	}
	return "msg_" + hex.EncodeToString(hash.Sum(nil)[:16])
}
