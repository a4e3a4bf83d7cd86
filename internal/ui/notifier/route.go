package notifier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
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
	outcome, err := outbox.Of(n.store).Route(ctx, routed)
	n.counted.Add(int64(outcome.Counted))
	return true, err
}

// route decides who gets an entry, and when. about is its model; nil: it has none.
func (n *Notifier) route(entry outbox.Entry, about *store.Record, now time.Time) outbox.Routed {
	routed := outbox.Routed{ID: entry.ID}
	notice := noticeOf(n.store.Keys.Queue, n.config.Dashboard, entry)
	text, _ := json.Marshal(notice) // texts only
	summary, cause := notice.summary()
	for _, name := range n.routes.channelsFor(entry, about, now) {
		channel := n.routes.channels[name]
		recipient := name
		if _, mails := channel.sender.(*email); mails {
			address := channel.address(about)
			if address == "" {
				routed.Nobody++
				if count, log := n.nobody.Sample("nobody "+name, now); log {
					n.config.Log.Warn().Str("uid", entry.Fields[fieldUID]).Str("event", entry.Fields[fieldEvent]).Str("channel", name).Int("like_this", count).
						Msg("notifier: nobody is notified, as there is no valid address")
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
		routed.Told = append(routed.Told, outbox.Addressed{
			Channel: name, Recipient: recipient, At: now.Add(channel.gather), Notice: string(text),
			Kept: slices.Contains(kept, entry.Fields[fieldEvent]), Summary: summary, Cause: cause,
		})
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
	to := c.to
	switch {
	case to.Address != "":
		return to.Address
	case about == nil || !about.Exists:
		return ""
	case c.byPolicy:
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
	fieldOf    = "of"   // of a summary: the event that it counts
	fieldLink  = "link" // of a model, if the notifier knows where the dashboard is
)

// eventSummary is the event of a notice that stands for those that found a full mailbox.
const eventSummary = "summary"

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

// kept are the events that open or close something. Of the others a full mailbox keeps a number.
var kept = []string{string(policy.NoticeDisabled), string(policy.NoticeRecovered), "circuit_opened", "circuit_closed", "new_error"}

// summary is the beginning of the notice that counts notices like this one, and what it says of their cause.
func (n Notice) summary() (beginning, cause string) {
	text, _ := json.Marshal(Notice{fieldEvent: eventSummary, fieldOf: n[fieldEvent], fieldQueue: n[fieldQueue]}) // texts only
	if n["reason"] != "" || n["error_type"] != "" {
		reason, _ := json.Marshal(fingerprint.Of(n[fieldUID], n["error_type"], n["reason"]))
		cause = `,"reason":` + string(reason)
	}
	return strings.TrimSuffix(string(text), "}"), cause
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

// What says what happened.
func (n Notice) What() string { return n.say()[0] }

// Why gives the reason, in the words of a worker, a policy or an operator; empty: unknown.
func (n Notice) Why() string { return n.say()[1] }

// Next says what happens next, or what to do; empty: nothing.
func (n Notice) Next() string { return n.say()[2] }

func (n Notice) say() [3]string {
	number := func(field string) int { count, _ := strconv.Atoi(n[field]); return count } // 0 if it is no number
	is, reason := n[fieldUID]+" is ", ""
	if n["reason"] != "" {
		reason = strings.TrimSuffix(n["reason"], ".") + "."
	}
	circuit, opened, closed := n[fieldKey], "Its models wait until a probe succeeds.", "Its models start again."
	if circuit == model.QueueCircuitKey {
		circuit, opened, closed = "the whole queue", "Look for a cause on your side. No model is disabled meanwhile.", "Failures may disable models again."
	}
	by := reason
	if failed := number("failures"); n["failures"] != "" {
		by = fmt.Sprintf("%d of the last %s failed.", failed, words.Count(failed+number("successes"), "attempt", "attempts"))
	} else if n["by"] != "" {
		by = words.Sentence("by " + strings.TrimSuffix(n["by"]+": "+reason, ": "))
	}
	switch event := n[fieldEvent]; event {
	case "circuit_opened":
		return [3]string{"The circuit of " + circuit + " is open.", by, opened}
	case "circuit_closed":
		return [3]string{"The circuit of " + circuit + " is closed.", by, closed}
	case "new_error":
		what := words.Count(number("models"), "model fails", "models fail") + " with " + cmp.Or(n["signature"], n["error"]) + "."
		return [3]string{what, reason, "Mend the cause, then run these models."}
	case eventSummary:
		what := words.Count(number("count"), "more notice says ", "more notices say ") + strings.ReplaceAll(n[fieldOf], "_", " ") + "."
		return [3]string{what, words.Sentence(n["reason"]), "Too many waited to be told one by one."}
	case string(policy.NoticeRecovered):
		return [3]string{n[fieldUID] + " works again.", by}
	case string(policy.NoticeFresh):
		return [3]string{is + "fresh again.", by}
	case string(policy.NoticeFailing):
		why := "it failed " + words.Count(number("attempt_no"), "time", "times") + ": " + cmp.Or(n["reason"], n["error_type"], "nobody said why")
		return [3]string{is + event + ".", words.Sentence(why), words.Sentence(n["refresh_why"])}
	case string(policy.NoticeSuspect):
		return [3]string{"The last success of " + n[fieldUID] + " is doubted.", by, "Look at the numbers, then accept or reject it."}
	case string(policy.NoticeStale):
		if at := n["last_success_at"]; at != "" {
			return [3]string{is + event + ".", "Its last success was at " + at + ".", "Look why it fails or waits."}
		}
		return [3]string{is + event + ".", "It has never succeeded.", "Look why it fails or waits."}
	default:
		return [3]string{is + event + ".", by, "Nothing is tried until it is saved or enabled."}
	}
}
