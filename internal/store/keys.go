package store

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// Keys builds every Redis key of one queue. No other file holds a key.
type Keys struct {
	queue string
}

var queuePattern = regexp.MustCompile(`^([A-Za-z0-9_.-]{1,64}|\{[A-Za-z0-9_.:-]{1,64}\})$`)

// NewKeys accepts the name of a queue: letters, digits and _.- , or the same with colons inside braces ("{bigtables:3}"),
// which Redis Cluster needs to keep all keys of a queue in one slot.
func NewKeys(queue string) (Keys, error) {
	if !queuePattern.MatchString(queue) {
		return Keys{}, fmt.Errorf(`queue: expected 1-64 letters, digits or _.- as in "bigtables" or "{bigtables:3}", found %q`, queue)
	}
	return Keys{queue}, nil
}

// Traces are keys of which there is one as soon as anything has happened in the queue.
func (k Keys) Traces() []string {
	return []string{
		k.Input(), k.Output(), k.Control(), k.Stats(), k.Due(), k.Running(), k.Journal(), k.Policies(), k.Pollers(), k.Dispatchers(), k.Workers(),
	}
}

// Queue returns the name of the queue.
func (k Keys) Queue() string { return k.queue }

// Tagged reports whether all keys of the queue share a hash tag, as Redis Cluster needs.
func (k Keys) Tagged() bool { return strings.HasPrefix(k.queue, "{") }

// Input is a list: attempts for workers, RPUSH / LPOP.
func (k Keys) Input() string { return k.queue + "-input" }

// Output is a list: messages from workers, RPUSH / LPOP.
func (k Keys) Output() string { return k.queue + "-output" }

// Control is a list: messages from applications, RPUSH / LPOP.
func (k Keys) Control() string { return k.queue + "-control" }

// Model is a hash: state and definition of one model.
func (k Keys) Model(uid string) string { return k.models() + uid }

func (k Keys) models() string { return k.queue + ":model:" }

// Payload is a string: the JSON object that workers get.
func (k Keys) Payload(uid string) string { return k.queue + ":payload:" + uid }

// History is a list: the attempts of one model that ended last, newest first, capped.
func (k Keys) History(uid string) string { return k.queue + ":history:" + uid }

// Due is a zset: uid to refresh_at in Unix ms, of idle, enabled models.
func (k Keys) Due() string { return k.queue + ":due" }

// Urgent is a zset: uid to refresh_at in Unix ms, of idle, enabled models that somebody wants to be started at once.
func (k Keys) Urgent() string { return k.queue + ":urgent" }

// Parked is a zset: uid to refresh_at in Unix ms, of idle, enabled models that wait for a gate.
func (k Keys) Parked() string { return k.queue + ":parked" }

// ParkedBy is a zset: uid to refresh_at in Unix ms, of those that wait for one gate.
func (k Keys) ParkedBy(gate string) string { return k.queue + ":parked:" + gate }

// Gates is a zset: gate to when a dispatcher is to look at it in Unix ms.
func (k Keys) Gates() string { return k.queue + ":gates" }

// Holds is a hash: id of a hold to its JSON; and changes, how often they have changed.
func (k Keys) Holds() string { return k.queue + ":holds" }

// Limit is a zset: uid to deadline_at in Unix ms, of the attempts that one key counts. What dies frees itself.
func (k Keys) Limit(name string) string { return k.queue + ":limit:" + name }

// Rate is a string: when the next start of one key may be in Unix us, until then.
func (k Keys) Rate(name string) string { return k.queue + ":rate:" + name }

// Circuit is a hash: what the last attempts of one key have come to, and whether its circuit is open. It goes a week after the last one.
func (k Keys) Circuit(name string) string { return k.queue + ":circuit:" + name }

// QueueCircuit is a hash: whether the circuit of the queue is open, and its settings. It stays.
func (k Keys) QueueCircuit() string { return k.Circuit(model.QueueCircuitKey) }

// Limits is a hash: key, or template of keys, to the JSON of a limit that was set at run time.
func (k Keys) Limits() string { return k.queue + ":limits" }

// Calendars is a hash: name to the JSON of a calendar.
func (k Keys) Calendars() string { return k.queue + ":calendars" }

// Failing is a zset: uid to failing_since in Unix ms, of models that have failed since their last success.
func (k Keys) Failing() string { return k.queue + ":failing" }

// Errors is a zset: id of a signature to how many models are failing by it.
func (k Keys) Errors() string { return k.queue + ":errors" }

// PastErrors is a zset: id of a signature by which no model is failing any more to when the last one ceased to, in Unix ms, for a day.
func (k Keys) PastErrors() string { return k.queue + ":past_errors" }

// Error is a hash: what is known of a signature. It expires when it is past.
func (k Keys) Error(id string) string { return k.queue + ":error:" + id }

// Disabled is a zset: uid to when it was disabled in Unix ms.
func (k Keys) Disabled() string { return k.queue + ":disabled" }

// StaleAt is a zset: uid to when its freshness changes next in Unix ms, of models whose policies promise some and which are not stale.
func (k Keys) StaleAt() string { return k.queue + ":stale_at" }

// Late is a zset: uid to when it becomes stale in Unix ms, of those that are late; or to Never, of those that never succeeded.
func (k Keys) Late() string { return k.queue + ":late" }

// Stale is a zset: uid to since when it is stale in Unix ms.
func (k Keys) Stale() string { return k.queue + ":stale" }

// Label is a set: uids of the models with a label, such as tenant=t1. The hash of a model decides.
func (k Keys) Label(term string) string { return k.queue + ":label:" + term }

// Running is a zset: uid to deadline_at in Unix ms, of models with an attempt in flight.
func (k Keys) Running() string { return k.queue + ":running" }

// Policies is a hash: name to canonical JSON.
func (k Keys) Policies() string { return k.queue + ":policies" }

// PolicyUses is a hash: inline policy to "? " and when a model was saved with it last in Unix ms.
func (k Keys) PolicyUses() string { return k.queue + ":policy_uses" }

// Bulks is a zset: id to since in Unix ms, of bulks that are not over.
func (k Keys) Bulks() string { return k.queue + ":bulks" }

// BulksEnded is a zset: id to when it ended in Unix ms, of bulks that were over within a day.
func (k Keys) BulksEnded() string { return k.queue + ":bulks_ended" }

// Bulk is a hash: a wish about many models, and how far pollers have come with it.
func (k Keys) Bulk(id string) string { return k.queue + ":bulk:" + id }

// Claimed is a list: results that one poller has claimed and not yet applied, each behind a letter.
func (k Keys) Claimed(owner string) string { return k.queue + ":claimed:" + owner }

// Lane is a list: commands that are claimed and not yet applied, in order, for the one poller that holds the lane.
func (k Keys) Lane() string { return k.Claimed(LaneOwner) }

// LaneOwner stands where other claimed lists name their poller: no poller may have that name.
const LaneOwner = "control"

// Holder is a string: the poller that holds the lane. It holds it no longer when it is not known in Pollers, or silent.
func (k Keys) Holder() string { return k.queue + ":holder" }

// Dispatchers is a zset: name of a dispatcher to its last heartbeat in Unix ms.
func (k Keys) Dispatchers() string { return k.queue + ":dispatchers" }

// Pollers is a zset: owner of a claimed list to its last heartbeat in Unix ms.
func (k Keys) Pollers() string { return k.queue + ":pollers" }

// Front is a list: what stood first in the input list, by its ticket, when it was first seen there and when last, in Unix ms; capped.
func (k Keys) Front() string { return k.queue + ":front" }

// Taken is a list: entries of the input list that one worker pool works on, until they are answered or requeued.
func (k Keys) Taken(owner string) string { return k.queue + ":taken:" + owner }

// Workers is a zset: owner of a taken list to its last heartbeat in Unix ms.
func (k Keys) Workers() string { return k.queue + ":workers" }

// Journal is a stream: every transition, capped.
func (k Keys) Journal() string { return k.queue + ":journal" }

// Outbox is a stream: notices for whoever tells people. An entry goes when all groups have acknowledged it, or nobody has in time.
func (k Keys) Outbox() string { return k.queue + ":outbox" }

// Recipients is a zset: recipient of one channel to when it is told next in Unix ms, as long as something waits, or would have to.
func (k Keys) Recipients(channel string) string { return k.queue + ":recipients:" + channel }

// Notices is a list: what waits for one recipient, oldest first, bounded.
func (k Keys) Notices(recipient string) string { return k.queue + ":notices:" + recipient }

// Deliveries is a hash: recipient for which something waits to the message in hand for it; empty: none is.
func (k Keys) Deliveries() string { return k.queue + ":deliveries" }

// Undelivered is a list: messages that could not be delivered, oldest first, capped.
func (k Keys) Undelivered() string { return k.queue + ":undelivered" }

// Told is a list: notices for other programs, RPUSH / LPOP, capped.
func (k Keys) Told(name string) string { return k.queue + ":told:" + name }

// Rejected is a list: messages that could not be handled, with the reason and the raw bytes, capped.
func (k Keys) Rejected() string { return k.queue + ":rejected" }

// Commands is a zset: id of a command to when it was handled in Unix ms, for a day.
func (k Keys) Commands() string { return k.queue + ":commands" }

// Reply is a list: what became of commands whose sender asked for it there, oldest first, bounded and for a day.
func (k Keys) Reply(name string) string { return k.queue + ":reply:" + name }

var replyPattern = regexp.MustCompile(`^(.*):reply:([A-Za-z0-9_.-]{1,100})$`)

// cutReply cuts what may be the key of a reply list into the name of the queue and that of the list.
func cutReply(key string) (queue Keys, name string, is bool) {
	found := replyPattern.FindStringSubmatch(key)
	if found == nil {
		return Keys{}, "", false
	}
	return Keys{found[1]}, found[2], true
}

// Stats is a hash: counters.
func (k Keys) Stats() string { return k.queue + ":stats" }

// FormerCircuit is a hash: the circuit of the queue as the release before kept it. Whoever measures makes it QueueCircuit.
func (k Keys) FormerCircuit() string { return k.queue + ":brake" }

// Wake is a list of at most one token: it calls a dispatcher that waits.
func (k Keys) Wake() string { return k.queue + ":wake" }

// bare is the name of the queue without braces.
func (k Keys) bare() string { return strings.Trim(k.queue, "{}") }

// tag is the name of the queue in braces.
func (k Keys) tag() string { return "{" + k.bare() + "}" }

// part are the keys of a part of the queue.
func (k Keys) part(i int) Keys { return Keys{"{" + k.bare() + ":" + strconv.Itoa(i) + "}"} }

// AllParts are patterns that match the keys of all parts of the queue.
func (k Keys) AllParts() Keys { return Keys{"{" + k.bare() + ":[0-9]*}"} }

var partPattern = regexp.MustCompile(`^(\{.+):(0|[1-9][0-9]{0,3})\}$`)

// whole are the keys of the queue of which this would be a part, by its name, and the number of the part; false: it cannot be one.
func (k Keys) whole() (whole Keys, place int, like bool) {
	found := partPattern.FindStringSubmatch(k.queue)
	if found == nil {
		return Keys{}, 0, false
	}
	place, err := strconv.Atoi(found[2])
	return Keys{found[1] + "}"}, place, err == nil
}

// Settings is a hash: what all daemons must agree on. It is the same one whether the name of the queue has braces or not.
func (k Keys) Settings() string { return k.tag() + ":settings" }

// Forwarded is a hash: number of another part to that of the last command from there; numbered, the last that was claimed here.
func (k Keys) Forwarded() string { return k.queue + ":forwarded" }
