package store

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// Keys are the Redis keys of one queue. No other file holds a key. A zset has the uids of models for members, and times for scores, in Unix ms,
// where nothing else is said.
type Keys struct {
	Queue string // the name of the queue

	Input   string `key:"-input" type:"list"`   // attempts for workers, RPUSH / LPOP
	Output  string `key:"-output" type:"list"`  // messages from workers, RPUSH / LPOP
	Control string `key:"-control" type:"list"` // messages from applications, RPUSH / LPOP

	Due      string `key:":due" type:"zset"`      // refresh_at of idle, enabled models
	Urgent   string `key:":urgent" type:"zset"`   // refresh_at of idle, enabled models that somebody wants to be started at once
	Parked   string `key:":parked" type:"zset"`   // refresh_at of idle, enabled models that wait for a blocker
	Running  string `key:":running" type:"zset"`  // when the attempt in flight of a model expires
	Failing  string `key:":failing" type:"zset"`  // failing_since of models that have failed since their last success
	Disabled string `key:":disabled" type:"zset"` // when the model was disabled
	StaleAt  string `key:":stale_at" type:"zset"` // when the freshness changes next, of models whose policies promise some and which are not stale
	Late     string `key:":late" type:"zset"`     // when a late model becomes stale; Never, if it never succeeded
	Stale    string `key:":stale" type:"zset"`    // since when the model is stale

	Blockers   string `key:":gates" type:"zset"`       // blocker to when a dispatcher rechecks it
	Holds      string `key:":holds" type:"hash"`       // id of a hold to its JSON; and changes, how often they have changed
	Limits     string `key:":limits" type:"hash"`      // key, or template of keys, to the JSON of a limit that was set at run time
	Calendars  string `key:":calendars" type:"hash"`   // name to the JSON of a calendar
	Policies   string `key:":policies" type:"hash"`    // name to canonical JSON
	PolicyUses string `key:":policy_uses" type:"hash"` // inline policy to "? " and when a model was saved with it last
	Errors     string `key:":errors" type:"zset"`      // fingerprint to how many models are failing by it
	PastErrors string `key:":past_errors" type:"zset"` // fingerprint without failing models to when the last one ceased to fail, for a day
	Bulks      string `key:":bulks" type:"zset"`       // id to since when, of bulks that are not over
	BulksEnded string `key:":bulks_ended" type:"zset"` // id to when it ended, of bulks that were over within a day
	Zones      string `key:":zones" type:"hash"`       // zone to what its clocks show, as the queue was planned; and which data planned it, and which its daemons have
	Settings   string `key:":settings"`                // a hash: what all daemons must agree on; the same key with and without braces around the name of the queue

	QueueCircuit string `key:":circuit:queue" type:"hash"` // whether the circuit of the queue is open, and its settings. It stays.

	Commands        string `key:":commands" type:"zset"`        // id of a command to when it was handled, for a day
	ClaimedCommands string `key:":claimed:control" type:"list"` // commands that are claimed and not yet applied, in order, for the leader
	Leader          string `key:":holder" type:"string"`        // the poller that applies the commands. It leads no longer when it is not known in Pollers, or silent.
	Forwarded       string `key:":forwarded" type:"hash"`       // number of another part to its last command here; numbered, the last that was claimed here
	Dispatchers     string `key:":dispatchers" type:"zset"`     // name of a dispatcher to its last heartbeat
	Pollers         string `key:":pollers" type:"zset"`         // owner of a claimed list to its last heartbeat
	Workers         string `key:":workers" type:"zset"`         // owner of a taken list to its last heartbeat
	Orders          string `key:":orders" type:"hash"`          // name of a worker pool to what an operator asks of it
	Front           string `key:":front" type:"list"`           // what stood first in the input list, by its ticket, when it was first seen there and when last; capped
	Heard           string `key:":heard" type:"hash"`           // up to when messages are claimed and applied, and when no dispatcher was there
	Wake            string `key:":wake" type:"list"`            // at most one token, which calls a dispatcher that waits

	Journal     string `key:":journal" type:"stream"`   // every transition, capped
	Deeds       string `key:":deeds" type:"stream"`     // what people and programs did to the queue, capped
	Outbox      string `key:":outbox" type:"stream"`    // notices. An entry goes when all groups have acknowledged it, or nobody has in time.
	Deliveries  string `key:":deliveries" type:"hash"`  // recipient for which something waits to the message in hand for it; empty: none is
	Undelivered string `key:":undelivered" type:"list"` // messages that could not be delivered, oldest first, capped
	Rejected    string `key:":rejected" type:"list"`    // messages that could not be handled, with the reason and the raw bytes, capped
	Logs        string `key:":logs" type:"list"`        // what attempts have said, oldest first, capped
	Stats       string `key:":stats" type:"hash"`       // counters
	Hours       string `key:":hours" type:"hash"`       // minute in UTC, for older hours and days their first one, to what was counted and held when it began, for 90 days
}

func newKeys(queue string) Keys {
	k := Keys{Queue: queue}
	for field, value := range reflect.ValueOf(&k).Elem().Fields() {
		if name := field.Tag.Get("key"); name != "" {
			value.SetString(queue + name)
		}
	}
	k.Settings = tagOf(queue) + ":settings"
	return k
}

// Types are the types of the single keys of a part, by their names.
func (k *Keys) Types() map[string]string {
	types := map[string]string{}
	for field, value := range reflect.ValueOf(k).Elem().Fields() {
		if kind := field.Tag.Get("type"); kind != "" {
			types[value.String()] = kind
		}
	}
	return types
}

var queuePattern = regexp.MustCompile(`^([A-Za-z0-9_.-]{1,64}|\{[A-Za-z0-9_.:-]{1,64}\})$`)

// NewKeys accepts the name of a queue: letters, digits and _.- , or the same with colons inside braces ("{bigtables:3}"),
// which Redis Cluster needs to keep all keys of a queue in one slot.
func NewKeys(queue string) (Keys, error) {
	if !queuePattern.MatchString(queue) {
		return Keys{}, fmt.Errorf(`queue: expected 1-64 letters, digits or _.- as in "bigtables" or "{bigtables:3}", found %q`, queue)
	}
	return newKeys(queue), nil
}

// CommandOwner takes the place of the poller in the key of the claimed commands: no poller may have that name.
const CommandOwner = "control"

// Model is a hash: state and definition of one model.
func (k *Keys) Model(uid string) string { return k.models() + uid }

func (k *Keys) models() string { return k.Queue + ":model:" }

// Payload is a string: the JSON object that workers get.
func (k *Keys) Payload(uid string) string { return k.Queue + ":payload:" + uid }

// History is a list: the attempts of one model that ended last, newest first, capped.
func (k *Keys) History(uid string) string { return k.Queue + ":history:" + uid }

// Label is a set: uids of the models with a label, such as tenant=t1. The hash of a model decides.
func (k *Keys) Label(term string) string { return k.Queue + ":label:" + term }

// ParkedBy is a zset: refresh_at of the models that wait for one blocker.
func (k *Keys) ParkedBy(blocker string) string { return k.Queue + ":parked:" + blocker }

// Limit is a zset: deadline_at of the attempts that one key counts. A dead attempt frees its slot by then.
func (k *Keys) Limit(name string) string { return k.Queue + ":limit:" + name }

// Rate is a string: when the next start of one key may be in Unix us, until then.
func (k *Keys) Rate(name string) string { return k.Queue + ":rate:" + name }

// Circuit is a hash: the outcomes of the last attempts of one key, and whether its circuit is open. It goes a week after the last one.
func (k *Keys) Circuit(name string) string { return k.Queue + ":circuit:" + name }

// Error is a hash: the failure group of a fingerprint. It expires when no model has failed by it for a day.
func (k *Keys) Error(id string) string { return k.Queue + ":error:" + id }

// Bulk is a hash: a wish about many models, and how far pollers have come with it.
func (k *Keys) Bulk(id string) string { return k.Queue + ":bulk:" + id }

// Claimed is a list: results that one poller has claimed and not yet applied, each behind a letter.
func (k *Keys) Claimed(owner string) string { return k.Queue + ":claimed:" + owner }

// Taken is a list: entries of the input list that one worker pool works on, until they are answered or requeued.
func (k *Keys) Taken(owner string) string { return k.Queue + ":taken:" + owner }

// Recipients is a zset: recipient of one channel to its next delivery.
func (k *Keys) Recipients(channel string) string { return k.Queue + ":recipients:" + channel }

// Notices is a list: the mailbox of one recipient, oldest first, bounded.
func (k *Keys) Notices(recipient string) string { return k.Queue + ":notices:" + recipient }

// Summary is a hash: notice without its end to how many it stands for, of those for which a mailbox had no room.
func (k *Keys) Summary(recipient string) string { return k.Queue + ":summary:" + recipient }

// Told is a list: notices for other programs, RPUSH / LPOP, capped.
func (k *Keys) Told(name string) string { return k.Queue + ":told:" + name }

// Reply is a list: results of commands whose sender asked for them there, oldest first, bounded and for a day.
func (k *Keys) Reply(name string) string { return k.Queue + ":reply:" + name }

// Traces are keys: one exists as soon as anything has happened in the queue.
func (k *Keys) Traces() []string {
	return []string{k.Input, k.Output, k.Control, k.Stats, k.Due, k.Running, k.Journal, k.Policies, k.Pollers, k.Dispatchers, k.Workers}
}

// Tagged reports whether all keys of the queue share a hash tag, as Redis Cluster needs.
func (k *Keys) Tagged() bool { return strings.HasPrefix(k.Queue, "{") }

// AllParts are patterns that match the keys of all parts of the queue, as if each were a queue of its own.
func (k *Keys) AllParts() Keys {
	return newKeys("{" + bareName(k.Queue) + ":[0-9]*}")
}

// bareName is the name of a queue without braces, tagOf in braces.
func bareName(queue string) string { return strings.Trim(queue, "{}") }

func tagOf(queue string) string { return "{" + bareName(queue) + "}" }

var partPattern = regexp.MustCompile(`^(\{.+):(0|[1-9][0-9]{0,3})\}$`)

// wholeOf splits the name of a part into its queue and its number; false: it is no such name.
func wholeOf(queue string) (whole string, place int, like bool) {
	found := partPattern.FindStringSubmatch(queue)
	if found == nil {
		return "", 0, false
	}
	place, err := strconv.Atoi(found[2])
	return found[1] + "}", place, err == nil
}

var replyPattern = regexp.MustCompile(`^(.*):reply:([A-Za-z0-9_.-]{1,100})$`)

// KeyKind is the kind of an index.
type KeyKind string

// The kinds of indexes.
const (
	KeyLabel   KeyKind = "label"
	KeyBlocker KeyKind = "gate" // what waits for one
	KeyLimit   KeyKind = "limit"
)

// indexFields are the fields of a model that decide its membership of an index. Each label has a field of its own.
var indexFields = map[KeyKind]string{KeyBlocker: "parked_by", KeyLimit: "counted_by"}

// Index is one of many sets of a kind: the models of one label, blocker or limit. A queue has one of each of ScoreIndexes.
type Index struct {
	Kind KeyKind
	Name string // of the label, blocker or limit
}

// Index is the key of an index.
func (k *Keys) Index(i Index) string {
	switch i.Kind {
	case KeyBlocker:
		return k.ParkedBy(i.Name)
	case KeyLimit:
		return k.Limit(i.Name)
	default:
		return k.Label(i.Name)
	}
}

// Scored reports whether the index is a sorted set.
func (i Index) Scored() bool { return i.Kind != KeyLabel }

// Field is the field of a model that decides its membership.
func (i Index) Field() string {
	label, _, _ := strings.Cut(i.Name, "=")
	return cmp.Or(indexFields[i.Kind], labelPrefix+label)
}

// Said reports whether a model with this value of the field is a member.
func (i Index) Said(value string) bool {
	switch i.Kind {
	case KeyBlocker:
		return value == i.Name
	case KeyLimit:
		return slices.Contains(strings.Fields(value), string(model.NewBlocker(model.BlockerLimit, i.Name)))
	default:
		_, is, _ := strings.Cut(i.Name, "=")
		return value == is
	}
}

// Leaving lets a transition that writes all indexes also remove its model from one where it is by mistake.
func (t *Transition) Leaving(index Index) *Transition {
	switch index.Kind {
	case KeyBlocker:
		t.was.blocker = model.Blocker(index.Name)
	case KeyLimit:
		t.was.counted = strings.TrimSpace(t.was.counted + " " + string(model.NewBlocker(model.BlockerLimit, index.Name)))
	case KeyLabel:
		t.stray = index.Name
	}
	return t
}
