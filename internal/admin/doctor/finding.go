package doctor

import "strings"

// Severity says how bad a finding is.
type Severity string

// The severities. Only an error breaks a guarantee.
const (
	Error   Severity = "error"   // an invariant or a guarantee is broken
	Warning Severity = "warning" // nothing is broken, but somebody should look at it
	Info    Severity = "info"    // good to know
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`  // short and stable
	Where    string   `json:"where"` // a key, the uid of a model, or a part of Redis
	Want     string   `json:"expected"`
	Found    string   `json:"found"`
	// Repair says what --repair does or has done, or begins with "by hand: ". Empty: there is nothing to do.
	Repair   string `json:"repair,omitempty"`
	Repaired bool   `json:"mended"`
}

// kind is shared by all findings of one sort.
type kind struct {
	code     string
	severity Severity
	want     string
	repair   string // a promise of --repair, or what to do by hand; <where> becomes Finding.Where
}

func (k kind) wanting(rest string) kind {
	k.want += rest
	return k
}

func (k kind) at(where, found string) Finding {
	repair := strings.ReplaceAll(k.repair, "<where>", where)
	if repair != "" && repaired[repair] == "" {
		repair = "by hand: " + repair
	}
	return Finding{k.severity, k.code, where, k.want, found, repair, false}
}

// Of a model.
var (
	modelField     = kind{"model-field", Error, "fields that can be read", "save the model again, or set the field right with HSET"}
	modelRev       = kind{"model-rev", Warning, "rev: a whole number", repairRev}
	modelSchedule  = kind{"model-schedule", Error, "a schedule that can be read", "save the model again; until then it waits an hour at a time"}
	modelIdle      = kind{"model-idle", Warning, "a refresh_at, as the schedule goes on at ", "refreshd model run <where>"}
	attemptTorn    = kind{"attempt-torn", Error, "attempt_uid, started_at and deadline_at together or not at all", "refreshd model run --force <where>"}
	disabledBusy   = kind{"disabled-busy", Error, "a disabled model without attempt and refresh_at", "refreshd model enable <where>, or disable"}
	parkedTorn     = kind{"parked-torn", Error, "parked_by of a model that waits", "refreshd model run --force <where>"}
	payloadMissing = kind{"payload-missing", Error, "a payload, at least {}", "save the model again"}
	payloadObject  = kind{"payload-unreadable", Error, "a JSON object", "save the model again"}
)

// Of a queue of several parts.
var (
	wrongPart      = kind{"wrong-part", Error, "in its part, ", "save it again, which is done there, and then: refreshd model rm <where> --queue "}
	circuitDiffers = kind{"circuit-differs", Error, "the settings of the first part, ", repairFirst}
)

// Of keys that no model, process or attempt owns any more.
var (
	payloadOrphan   = kind{"payload-orphan", Error, "a model for it", repairOrphan}
	historyOrphan   = kind{"history-orphan", Error, "a model for it", repairOrphan}
	indexOrphan     = kind{"index-orphan", Error, "a model for it", repairOrphan}
	claimedOrphan   = kind{"claimed-orphan", Error, "a poller with a heartbeat", repairClaimed}
	takenOrphan     = kind{"taken-orphan", Error, "a worker pool with a heartbeat", repairTaken}
	claimedLapsed   = kind{"claimed-silent", Warning, lapsed + "poller that takes over", "start a poller: it takes over by itself"}
	takenLapsed     = kind{"taken-silent", Warning, lapsed + "worker pool that takes over", "start a worker pool: it takes over by itself"}
	heartbeatAhead  = kind{"heartbeat-ahead", Warning, "heartbeats that are past", repairAhead}
	inputStale      = kind{"input-stale", Warning, "entries of running attempts only", repairInput}
	inputUnreadable = kind{"input-unreadable", Warning, "JSON with the uids of a model and an attempt", "LREM <where> 1 and the entry; workers drop it"}

	lapsed = "a sign of life within " + maxHeartbeatAge.String() + ", or another "
)

// Of the queue.
var (
	keyType          = kind{"key-type", Error, "a ", "RENAME <where> to another name, and then --repair; if it was that of a model, save the model again"}
	policyUnreadable = kind{"policy-unreadable", Error, "a policy", "store it again" + byPut}
	policyMissing    = kind{"policy-missing", Error, "the name of a stored policy", "store it" + byPut}
	policyUnused     = kind{"policy-unused", Info, "a model that uses it", repairOrphan}
	bulkOrphan       = kind{"bulk-orphan", Warning, "a bulk that is not over", repairOrphan}
	errorCount       = kind{"error-count", Warning, "as many counted as models that are failing by it: ", repairUses}
	bulkLost         = kind{"bulk-lost", Error, "a place in the set of bulks", repairBulk}
	bulkUnreadable   = kind{"bulk-unreadable", Warning, "a bulk that this release can carry out", "update the pollers, or refreshd bulk cancel <where>"}
	blockerLost      = kind{"gate-lost", Error, "a place among the blockers that a dispatcher looks at", repairBlocker}
	blockerForgotten = kind{"gate-forgotten", Error, "looked at when it may open, ", repairBlocker}
	blockerLate      = kind{"gate-late", Warning, "blockers that are rechecked within " + maxRecheckLateness.String(), "start a dispatcher, or look into its log"}
	probeLost        = kind{"probe-lost", Error, "a running attempt that tries it", repairProbe}
	holdUnreadable   = kind{"hold-unreadable", Error, "a hold that can be read", "refreshd release <where>, and hold again"}
	holdAll          = kind{"all-held", Warning, "models that may start", "refreshd release <where> --within 30m, if nobody holds them on purpose any more"}
	limitUnreadable  = kind{"limit-unreadable", Error, "a limit that can be read: this one limits nothing", "refreshd limit set <where>, or rm"}
	calendarOdd      = kind{"calendar-unreadable", Error, "a calendar that can be read: this one closes nothing", "store it again with refreshd calendar put"}
	calendarMissing  = kind{"calendar-missing", Warning, "the name of a stored calendar", "store it with refreshd calendar put; until then it closes nothing"}
	dispatcherLate   = kind{"dispatcher-late", Warning, "deadlines that passed" + inTime, "start a dispatcher, or look into its log"}
	dueLate          = kind{"due-late", Warning, "models that became due" + inTime, "start workers if many attempts wait, otherwise a dispatcher"}
	// Somebody waits, and nobody is there.
	dispatcherMissing = kind{"dispatcher-missing", Error, "a dispatcher for ", "start a dispatcher"}
	pollerMissing     = kind{"poller-missing", Error, "a poller for ", "start a poller"}
	workerMissing     = kind{"worker-missing", Error, "a worker for ", "start workers"}

	outboxWaits = kind{"outbox", Info, "notifications that are delivered", ""}
	outboxLong  = kind{"outbox", Warning, "notifications that are delivered", "refreshd notifier --routes FILE, or XTRIM <where> MAXLEN 0 if nobody is to be told"}
	undelivered = kind{"undelivered", Warning, "messages that can be delivered", "refreshd undelivered ls, and then requeue or drop"}
	noticesFull = kind{"notices-counted", Warning, "a mailbox with room for each notice", "a summary says how many; look why its messages are slow, or name fewer events in the routes"}
	rejected    = kind{"rejected", Warning, "messages that can be handled", "refreshd rejected ls, and then requeue or drop"}
	wakeLong    = kind{"wake-long", Warning, "at most one call", repairWake}
	zoneData    = kind{"zone-data", Warning, "the same zone data everywhere", "run the same release of refreshd everywhere, or update tzdata of the hosts and begin again"}
	circuitOpen = kind{"circuit-open", Warning, "a closed circuit of the queue", "look why attempts fail; then refreshd circuit close queue"}

	byPut  = " with refreshd policy put; its models run under the default policy"
	inTime = " within " + maxLateness.String()
)

// Of Redis.
var (
	serverUnknown   = kind{"server-silent", Info, "an answer", "allow this user INFO, or check version, persistence and memory yourself"}
	versionTooOld   = kind{"version", Error, "Redis 7.0 or later: the scripts use LMOVE, LPOS and BLMOVE, which came with 6.2", "upgrade Redis"}
	versionUntested = kind{"version", Warning, "Redis 7.0 or later, which the tests run on; the commands in use exist since 6.2", "upgrade Redis"}
	commandRefused  = kind{"command", Error, "a server that knows it, and lets this user run it", "allow it; docs/servers.md says what runs without it"}
	replica         = kind{"replica", Error, "a master: a replica takes no writes", "connect to the master, or through sentinels (redis-sentinel://)"}
	clusterTag      = kind{"cluster-tag", Error, inOneSlot, "use --queue '{<where>}' and redis-cluster://"}
	loading         = kind{"loading", Warning, "a server that has loaded its data", ""}
	eviction        = kind{"eviction", Warning, "noeviction: any other may remove models without a word", "CONFIG SET maxmemory-policy noeviction"}
	memoryFull      = kind{"memory-full", Warning, "at most 90% of it in use: beyond it nothing is started or applied", "raise maxmemory"}
	saveFailing     = kind{"persistence-failing", Error, "ok: otherwise Redis may refuse writes", "look into the log of Redis, often its disk is full"}
	appendOnlyOff   = kind{"persistence", Warning, "yes", "CONFIG SET appendonly yes, and in the configuration of Redis"}
	fsyncUnseen     = kind{"persistence", Info, "everysec, or always if nothing may be lost", "look at appendfsync in the configuration of Redis"}
	clockSkew       = kind{"clock-skew", Warning, "clocks within " + maxSkew.String() + " (Redis' own decides)", "let NTP set both clocks"}
	deedsRefused    = kind{"deeds-refused", Warning, "a user of Redis that may keep what is done, for refreshd audit", "print users anew: refreshd acl"}
	repairRefused   = kind{"repair-refused", Error, "a Redis that takes what is repaired", "see to that, and run --repair again"}
	scriptsFail     = kind{"scripts", Error, "scripts that run", "allow EVALSHA and SCRIPT LOAD, or look at the error"}
	scriptsUnknown  = kind{"scripts", Warning, "scripts that are loaded", "start a dispatcher or a poller: either loads them for all"}
	scriptsRefused  = kind{"scripts", Info, "scripts that run", "check it as the user of a daemon; this one may not run scripts on all keys"}

	inOneSlot = "a queue in braces, so that all its keys are in one slot of the cluster"
)
