package notifier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

const routeBatch = 500

// Route routes entries of the outbox to mailboxes: first those that a dead notifier has left, then new ones. more: there may be others.
func (n *Notifier) Route(ctx context.Context) (more bool, err error) {
	entries, err := outbox.Of(n.store).Adopt(ctx, n.adopt, routeBatch)
	if err == nil && len(entries) == 0 {
		entries, err = outbox.Of(n.store).Read(ctx, routeBatch)
	}
	if err != nil || len(entries) == 0 {
		return false, err
	}
	now, err := n.store.Now(ctx)
	if err != nil {
		return false, err
	}
	var uids []string
	for _, entry := range entries {
		if uid := entry.Fields[fieldUID]; uid != "" {
			uids = append(uids, uid)
		}
	}
	models, err := n.store.Load(ctx, uids)
	if err != nil {
		return false, err
	}
	routed := redis.Map(entries, func(entry outbox.Entry) outbox.Routed { return n.route(entry, models[entry.Fields[fieldUID]], now) })
	_, err = outbox.Of(n.store).Route(ctx, routed)
	return true, err
}

// route decides who gets an entry, and when. about is its model; nil: it has none.
func (n *Notifier) route(entry outbox.Entry, about *store.Record, now time.Time) outbox.Routed {
	routed := outbox.Routed{ID: entry.ID}
	notice, _ := json.Marshal(noticeOf(n.store.Keys.Queue, n.config.Dashboard, entry)) // texts only
	for _, name := range n.routes.channelsFor(entry, about, now) {
		channel := n.routes.channels[name]
		recipient := name
		if _, mails := channel.sender.(*email); mails {
			address := channel.address(about)
			if address == "" {
				routed.Nobody++
				if count, log := n.nobody.Sample("nobody "+name, now); log {
					n.config.Log.Warn().Str("uid", entry.Fields[fieldUID]).Str("event", entry.Fields[fieldEvent]).Str("channel", name).Int("like_this", count).
						Msg("notifier: nobody is told, as there is no valid address")
				}
				continue
			}
			recipient += " " + address
		} else if channel.divided() {
			// Entries about the same model or key share a mailbox, to keep their order.
			hash := fnv.New32a()
			_, _ = io.WriteString(hash, entry.Fields[fieldUID]+" "+entry.Fields[fieldKey]) // a hash takes everything
			recipient += " " + strconv.Itoa(int(hash.Sum32()%maxAtOnce))
		}
		routed.Told = append(routed.Told, outbox.Addressed{Channel: name, Recipient: recipient, At: now.Add(channel.gather), Notice: string(notice)})
	}
	return routed
}

// divided reports whether the channel has several mailboxes, which are sent at once: a webhook without a digest.
func (c *Channel) divided() bool {
	_, posts := c.sender.(*webhook)
	return posts && c.digest.above == 0
}

// channelsFor returns the channels of an entry, each once.
func (r *Routes) channelsFor(entry outbox.Entry, about *store.Record, now time.Time) (names []string) {
	for _, to := range r.routes {
		if !slices.Contains(to.events, entry.Fields[fieldEvent]) {
			continue
		}
		if to.models != nil && (about == nil || !about.Exists || !to.models.Matches(&about.Model, about.Status(now, false))) {
			continue
		}
		for _, name := range to.channels {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// address is the recipient of e-mail about a model; empty: nobody.
func (c *Channel) address(about *store.Record) string {
	to := c.to.recipient
	switch {
	case to.Address != "":
		return to.Address
	case about == nil || !about.Exists:
		return ""
	case c.to.byPolicy:
		to = about.Policy.Email
	}
	return about.AddressOf(to)
}

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

// noticeOf makes the notice of an entry; dashboard is the address of the queue there, or empty.
func noticeOf(queue, dashboard string, entry outbox.Entry) Notice {
	n := make(Notice, len(entry.Fields)+3)
	maps.Copy(n, entry.Fields)
	n[fieldID], n[fieldQueue] = queue+"/"+entry.ID, queue
	if uid := n[fieldUID]; dashboard != "" && uid != "" {
		n[fieldLink] = dashboard + "/model?" + url.Values{"uid": {uid}}.Encode()
	}
	return n
}

// message is one notice for a recipient, or a digest of several. The same notices are the same message.
type message struct {
	at      time.Time
	address string // of the recipient within its channel; empty: the channel has one
	notices []Notice
}

// id is the same in every try, so that a recipient recognizes a repetition.
func (m *message) id() string {
	hash := sha256.New()
	for _, notice := range m.notices {
		_, _ = hash.Write([]byte(notice[fieldID] + "\n")) // a hash takes everything
	}
	return "msg_" + hex.EncodeToString(hash.Sum(nil)[:16])
}
