package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

var (
	routeNotices   = redis.LoadScript("route-notices.lua")
	settleNotices  = redis.LoadScript("settle-notices.lua")
	requeueNotices = redis.LoadScript("requeue-notices.lua")
)

// Bounds of the mailboxes.
const (
	maxDetails     = 10_000  // notices that wait for one recipient; beyond it others are only counted in its summary
	maxLine        = 100_000 // the same, of notices that are kept
	maxCauses      = 100     // of a summary; those beyond are not told apart
	fewNotices     = 500     // a summary follows when fewer wait
	maxUndelivered = 1_000   // messages that could not be delivered
	maxTold        = 10_000  // notices in a list for other programs
)

// Routed is an entry of the outbox with its recipients.
type Routed struct {
	ID     string // of the entry
	Nobody int    // how many of its routes lead to nobody
	Told   []Addressed
}

// Addressed is a notice for one recipient.
type Addressed struct {
	Channel   string
	Recipient string // begins with the name of the channel; another one of the channel differs behind it
	At        time.Time
	Notice    string // JSON
	Kept      bool   // it opens or closes something: a full mailbox takes it too
	// Summary is the beginning of the notice that counts those for which there is no room, and Cause what it goes on with.
	Summary, Cause string
}

// Outcome says what became of entries that were to be routed.
type Outcome struct {
	Routed  int // entries; another notifier has routed the others
	Counted int // notices for which a mailbox had no room: its summary counts them
}

// Route puts entries of the outbox in the mailboxes of their recipients and acknowledges them, all of one entry or nothing. An entry that another
// notifier has routed is left alone.
func (o Outbox) Route(ctx context.Context, entries []Routed) (outcome Outcome, err error) {
	if len(entries) == 0 {
		return outcome, nil
	}
	keys, args := []string{o.store.Keys.Outbox, o.store.Keys.Stats, o.store.Keys.Deliveries}, []any{notifierGroup, maxCauses}
	for _, entry := range entries {
		args = append(args, entry.ID, entry.Nobody, len(entry.Told))
		for _, told := range entry.Told {
			most := maxDetails
			if told.Kept {
				most = maxLine
			}
			keys = append(keys, o.store.Keys.Recipients(told.Channel), o.store.Keys.Notices(told.Recipient), o.store.Keys.Summary(told.Recipient))
			args = append(args, told.Recipient, redis.Millis(told.At), told.Notice, most, told.Summary, told.Cause)
		}
	}
	counts, err := redis.RunScript(ctx, o.store.Clients.Write, routeNotices, keys, args...).Int64Slice()
	if err == nil {
		outcome = Outcome{Routed: int(counts[0]), Counted: int(counts[1])}
	}
	return outcome, redis.Wrap(err, "route entries of the outbox")
}

// Counted is how many notices the summary of a recipient stands for, which waits with its mailbox.
func (o Outbox) Counted(ctx context.Context, recipient string) (counted int, err error) {
	counts, err := o.store.Clients.Read.HGetAll(ctx, o.store.Keys.Summary(recipient)).Result()
	for _, text := range counts {
		count, _ := strconv.Atoi(text) // an unreadable one counts as none
		counted += count
	}
	return counted, redis.Wrap(err, "read the summary of a recipient")
}

// DueRecipients are recipients of a channel that are due by now, those that wait longest first.
func (o Outbox) DueRecipients(ctx context.Context, channel string, now time.Time, limit int) ([]string, error) {
	by := &goredis.ZRangeBy{Min: "-inf", Max: redis.Millis(now), Count: int64(limit)}
	recipients, err := o.store.Clients.Read.ZRangeByScore(ctx, o.store.Keys.Recipients(channel), by).Result()
	return recipients, redis.Wrap(err, "read who is to be notified")
}

// Delivery is the progress of the notices to one recipient.
type Delivery struct {
	// By is who has the message in hand.
	By string `json:"by,omitempty"`
	// Size is how many notices the message in hand holds: the first that wait. Every try sends the same. 0: there is none.
	Size int `json:"size,omitempty"`
	// Tries is how often that message was tried in vain.
	Tries int `json:"tries,omitempty"`
	// Error is why it was, last.
	Error string `json:"error,omitempty"`
	// Since is when the window began in which Sent messages were sent, in Unix ms.
	Since int64 `json:"since,omitempty"`
	Sent  int   `json:"sent,omitempty"`
}

func (d Delivery) text() string {
	if d == (Delivery{}) {
		return ""
	}
	text, _ := json.Marshal(d) // texts and numbers only
	return string(text)
}

// Mailbox has the notices that wait for a recipient.
type Mailbox struct {
	Channel, Recipient string
	Delivery           Delivery
	Notices            []string // JSON, oldest first; of many the first
	// Next is when the next delivery is due: until then a message in hand is that of a notifier which lives. Zero: nothing waits.
	Next time.Time

	text string // of the delivery
}

// ReadMailbox reads the mailbox of a recipient, at most so many notices.
func (o Outbox) ReadMailbox(ctx context.Context, channel, recipient string, most int) (*Mailbox, error) {
	pipe := o.store.Clients.Read.Pipeline()
	next := pipe.ZScore(ctx, o.store.Keys.Recipients(channel), recipient) // first, as Settle compares it: who takes the message meanwhile sets another
	delivery, notices := pipe.HGet(ctx, o.store.Keys.Deliveries, recipient), pipe.LRange(ctx, o.store.Keys.Notices(recipient), 0, int64(most)-1)
	_, err := pipe.Exec(ctx)
	mailbox := &Mailbox{Channel: channel, Recipient: recipient, Notices: notices.Val(), text: delivery.Val()}
	if next.Err() == nil {
		mailbox.Next = time.UnixMilli(int64(next.Val()))
	}
	_ = json.Unmarshal([]byte(mailbox.text), &mailbox.Delivery) // an unreadable delivery begins anew
	return mailbox, redis.Wrap(redis.IgnoreMissing(err), "read the notices of a recipient")
}

// Settlement is a change of the mailbox of a recipient.
type Settlement struct {
	Delivery Delivery
	Next     time.Time // the next delivery; zero: nothing waits
	Done     int       // how many of its notices are done with
	Counter  string    // where these are counted; empty: nowhere
	// Undelivered says why they could not be delivered; empty: they were, or are not done with.
	Undelivered string
	At          time.Time
}

// Settle changes a mailbox as it was read; false: somebody else has it in hand, and nothing has changed.
func (o Outbox) Settle(ctx context.Context, mailbox *Mailbox, to Settlement) (bool, error) {
	k := &o.store.Keys
	keys := []string{k.Recipients(mailbox.Channel), k.Notices(mailbox.Recipient), k.Deliveries, k.Undelivered, k.Stats, k.Summary(mailbox.Recipient)}
	lost := ""
	if to.Undelivered != "" {
		text, _ := json.Marshal(Undelivered{
			At: model.FormatTime(to.At), Channel: mailbox.Channel, Recipient: mailbox.Recipient, Reason: to.Undelivered, Tries: to.Delivery.Tries,
			Notices: mailbox.Notices[:to.Done],
		}) // texts and numbers only
		lost, to.Delivery.Tries = string(text), 0
	}
	next, first := redis.Millis(to.Next), ""
	if len(mailbox.Notices) > 0 {
		first = mailbox.Notices[0]
	}
	args := []any{
		mailbox.Recipient, mailbox.text, to.Delivery.text(), next, to.Done, to.Counter, lost, maxUndelivered, first, redis.Millis(mailbox.Next),
		fewNotices, fmt.Sprintf(`,"at":%q,"id":"%s/%s-%%d","count":"%%s"}`, model.FormatTime(to.At), k.Queue, store.ShortID(mailbox.Recipient+first)),
	}
	settled, err := redis.RunScript(ctx, o.store.Clients.Write, settleNotices, keys, args...).Bool()
	if settled {
		mailbox.Delivery, mailbox.text, mailbox.Notices, mailbox.Next = to.Delivery, to.Delivery.text(), mailbox.Notices[to.Done:], to.Next
	}
	return settled, redis.Wrap(err, "settle the notices of a recipient")
}

// PushToList gives a message to other programs, in a list that keeps the newest.
func (o Outbox) PushToList(ctx context.Context, name string, notices []string) error {
	pipe, key := o.store.Clients.Write.Pipeline(), o.store.Keys.Told(name)
	pipe.RPush(ctx, key, notices)
	pipe.LTrim(ctx, key, -maxTold, -1)
	_, err := pipe.Exec(ctx)
	return redis.Wrap(err, "push to a list")
}

// Undelivered is a message that could not be delivered.
type Undelivered struct {
	At        string   `json:"at"` // RFC 3339
	Channel   string   `json:"channel"`
	Recipient string   `json:"recipient"`
	Reason    string   `json:"reason"`
	Tries     int      `json:"tries"`
	Notices   []string `json:"notices"` // JSON

	text string // as the list has it
}

// ID names the message for people.
func (u *Undelivered) ID() string { return store.ShortID(u.text) }

// Undelivered reads the messages that could not be delivered, oldest first.
func (o Outbox) Undelivered(ctx context.Context) ([]Undelivered, error) {
	texts, err := o.store.Clients.Read.LRange(ctx, o.store.Keys.Undelivered, 0, -1).Result()
	all := make([]Undelivered, len(texts))
	for i, text := range texts {
		_ = json.Unmarshal([]byte(text), &all[i]) // what cannot be read is empty
		all[i].text = text
	}
	return all, redis.Wrap(err, "read what could not be delivered")
}

// RequeueUndelivered puts messages back in the mailboxes of their recipients, due at once, and returns how many were still kept. After an error it
// may be repeated.
func (o Outbox) RequeueUndelivered(ctx context.Context, all []Undelivered) (moved int, err error) {
	now, err := o.store.Now(ctx)
	if err != nil {
		return 0, err
	}
	for _, one := range all {
		if one.Channel == "" || len(one.Notices) == 0 {
			return moved, errors.New("requeue what could not be delivered: expected a channel and notices, found none")
		}
		deeds, deed, err := o.store.Fleet().DeedArgs(ctx, model.Deed{Verb: "undelivered requeue", What: one.Recipient})
		if err != nil {
			return moved, err
		}
		keys := []string{o.store.Keys.Undelivered, o.store.Keys.Recipients(one.Channel), o.store.Keys.Notices(one.Recipient), o.store.Keys.Deliveries, deeds}
		args := append([]any{one.text, one.Recipient, redis.Millis(now), deed}, redis.Anys(one.Notices)...)
		done, err := redis.RunScript(ctx, o.store.Clients.Write, requeueNotices, keys, args...).Int()
		if moved += done; err != nil {
			return moved, fmt.Errorf("requeue what could not be delivered: %w", err)
		}
	}
	return moved, nil
}

// DropUndelivered forgets messages, and returns how many were still kept.
func (o Outbox) DropUndelivered(ctx context.Context, all []Undelivered) (dropped int, err error) {
	dropped, err = dropKept(ctx, o.store, "undelivered drop", o.store.Keys.Undelivered, all, func(u *Undelivered) string { return u.text })
	return dropped, redis.Wrap(err, "drop what could not be delivered")
}
