package store

//go:generate go test -run TestTheListOfWordsIsWhatGoAndTheDocumentSay -update .

// follows says what stands behind a word in an item.
type follows string

// What follows a word: nothing, one value, or a list behind its length. Behind a "#" stands how many keys a word brings, behind a "=" a name.
const (
	none     follows = ""
	oneValue follows = "value"
	aList    follows = "list"
)

// word is one of what commit.lua is told of an item.
type word struct {
	name    string
	follows follows
	unit    string // of the value
	meaning string
}

// words are all of them, in the order in which the values of an item stand, and then its lists.
var words = []word{
	{"message", oneValue, "", "the claimed entry that it answers"},
	{"id", oneValue, "", "of the command"},
	{"reply", oneValue, "", "for the reply list"},
	{"reject", oneValue, "", "for rejected"},
	{"settle", none, "", "no model changes"},
	{"rev", oneValue, "", "the revision when decided; empty: no model"},
	{"attempt", oneValue, "", "likewise the attempt; without the word: none"},
	{"push", oneValue, "", "an entry for input"},
	{"back", oneValue, "", "an entry of input to remove, or to replace by push"},
	{"must", none, "", "the entry must still be in input"},
	{"policy", aList, "", "name and text of the policy"},
	{"unknown", aList, "", "unknown fields to delete"},
	{"due", oneValue, "Unix ms", "score in due; without the word: leave it"},
	{"urgent", oneValue, "Unix ms", "likewise"},
	{"running", oneValue, "Unix ms", "likewise"},
	{"payload", oneValue, "", "the payload"},
	{"history", oneValue, "", "an entry of the history"},
	{"instead", none, "", "it replaces the newest"},
	{"attempts", aList, "", "the whole history, oldest first"},
	{"notice", aList, "", "an entry for the outbox: names and values"},
	{"second", aList, "", "another one"},
	{"third", aList, "", "likewise"},
	{"keys#<n>", none, "", "how many of hash, history, payload, reply list"},
	{"failing", oneValue, "Unix ms", "score in failing; empty: leave it"},
	{"disabled", oneValue, "Unix ms", "likewise"},
	{"parked", oneValue, "Unix ms", "likewise"},
	{"stale_at", oneValue, "Unix ms", "likewise"},
	{"late", oneValue, "Unix ms", "likewise"},
	{"stale", oneValue, "Unix ms", "likewise"},
	{"acquires#<n>", aList, "", "of each limit, two keys: maximum (empty: none), slots before and after (empty: unchanged), ms to keep them"},
	{"probe#1", none, "", "probe an open circuit"},
	{"labels#<n>", none, "", "sets of labels to join"},
	{"unlabels#<n>", none, "", "sets of labels to leave"},
	{"unblocks#1", none, "", "leave this blocker"},
	{"blocker#1", oneValue, "", "the blocker that parks it"},
	{"recheck", oneValue, "Unix ms", "when a dispatcher rechecks it"},
	{"frees#<n>", aList, "", "the limits that get a slot back"},
	{"extends#<n>", oneValue, "Unix ms", "until when these limits are held"},
	{"closes#<n>", oneValue, "", "until when these rates are closed in Unix us, and by whom"},
	{"circuit#1", aList, "", "blocker and key; 1 = failed, 0 = answered, empty = neither; failures and attempts that open it; when to probe, in RFC 3339 and ms"},
	{"fingerprint#3", aList, "", "id, models that it may stop unnoticed, text, reason, error type"},
	{"recovers#1", none, "", "leave the fingerprint"},
	{"log#1", aList, "", "an entry of the logs, and how many are kept"},
	{"remove", none, "", "remove the model, or what is left of one"},
	{"ticket", none, "", "draw a ticket"},
	{"fenced", none, "", "apply only if no hold has changed"},
	{"wake", none, "", "call a dispatcher"},
	{"count=<name>", none, "", "a counter"},
	{"next", oneValue, "", "the next revision"},
	{"event=<name>", none, "", "for the journal; without the word: none"},
	{"note=<name>", oneValue, "", "for the journal only"},
	{"field=<name>", oneValue, "", "a field of the hash"},
	{"now=<name>", none, "", "a field: the instant of the batch"},
	{"gone=<name>", none, "", "a field to delete"},
	{"left=<name>", none, "", "likewise, not journaled: it goes with attempt_uid"},
}
