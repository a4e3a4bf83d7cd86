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
	{"message", oneValue, "", "the claimed entry that the item answers"},
	{"id", oneValue, "", "the id of the command"},
	{"reply", oneValue, "", "the entry for the reply list"},
	{"reject", oneValue, "", "the entry for rejected"},
	{"settle", none, "", "no model changes"},
	{"rev", oneValue, "", "the revision on which the item was decided; empty: there was no model"},
	{"attempt", oneValue, "", "the attempt on which it was decided; without the word there was none"},
	{"push", oneValue, "", "the entry for input"},
	{"back", oneValue, "", "the entry that is taken out of input, or gives its place to the one to push"},
	{"must", none, "", "the entry to take back must be queued"},
	{"policy", aList, "", "name and text of the policy of the definition"},
	{"unknown", aList, "", "fields to delete that no model has"},
	{"due", oneValue, "Unix ms", "the score in due; without the word the model leaves it"},
	{"urgent", oneValue, "Unix ms", "likewise in urgent"},
	{"running", oneValue, "Unix ms", "likewise in running"},
	{"payload", oneValue, "", "the payload"},
	{"history", oneValue, "", "the entry of the history"},
	{"instead", none, "", "it takes the place of the newest one"},
	{"attempts", aList, "", "all entries of the history in place of those that there are, oldest first"},
	{"notice", aList, "", "an entry for the outbox: names and values"},
	{"second", aList, "", "another one"},
	{"keys#<n>", none, "", "how many of hash, history, payload and reply list are passed"},
	{"failing", oneValue, "Unix ms", "the score in failing; empty: the model leaves it"},
	{"disabled", oneValue, "Unix ms", "likewise in disabled"},
	{"parked", oneValue, "Unix ms", "likewise in parked"},
	{"stale_at", oneValue, "Unix ms", "likewise in stale_at"},
	{"late", oneValue, "Unix ms", "likewise in late"},
	{"stale", oneValue, "Unix ms", "likewise in stale"},
	{"acquires#<n>", aList, "", "for each two keys: how many may run with the start (empty: any number), its slots as they were decided on and as they are to be (empty: they stay), and for how many ms that is kept"},
	{"probe#1", none, "", "the attempt tries an open circuit"},
	{"labels#<n>", none, "", "the model joins so many sets of labels"},
	{"unlabels#<n>", none, "", "the model leaves so many"},
	{"unblocks#1", none, "", "the model leaves the models of a blocker"},
	{"blocker#1", oneValue, "", "the blocker that parks the model"},
	{"recheck", oneValue, "Unix ms", "when a dispatcher is to look at that"},
	{"frees#<n>", aList, "", "the blockers of so many limits, where the attempt leaves its place"},
	{"extends#<n>", none, "", "the attempt holds so many limits for longer"},
	{"closes#<n>", oneValue, "Unix us", "until when so many rates are closed"},
	{"circuit#1", aList, "", "blocker and key of a circuit; 1 = the attempt has failed, 0 = it was answered, empty = neither; after how many failures of how many it opens; when it is to be probed in RFC 3339 and in Unix ms"},
	{"fingerprint#3", aList, "", "by which the model fails: id, how many models it may stop unnoticed, its text, reason, error type"},
	{"recovers#1", none, "", "the model fails by no fingerprint any more"},
	{"remove", none, "", "the model goes"},
	{"ticket", none, "", "the attempt draws a ticket"},
	{"fenced", none, "", "the item holds only if no hold has changed"},
	{"wake", none, "", "a dispatcher is called"},
	{"count=<name>", none, "", "a counter"},
	{"next", oneValue, "", "the revision that follows"},
	{"event=<name>", none, "", "what the journal calls the item; without the word it is not told"},
	{"note=<name>", oneValue, "", "what only the journal is told"},
	{"field=<name>", oneValue, "", "a field of the hash"},
	{"now=<name>", none, "", "a field that is the instant of the batch"},
	{"gone=<name>", none, "", "a field that is deleted"},
	{"left=<name>", none, "", "likewise, and the journal is not told: it goes with attempt_uid"},
}
