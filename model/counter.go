package model

// Counters of a queue that no single decision names.
const (
	CounterCircuitOpened = "circuit_opened" // circuits that have opened
	CounterCircuitClosed = "circuit_closed" // circuits that have closed
	CounterBrokenModel   = "broken_model"   // messages about a model whose key holds something else
)

// Events are all transitions that are counted.
var Events = []Event{
	EventStart, EventTimeout, EventWithdrawn, EventTaken, EventQueueTimeout, EventSkipped, EventGiveUp, EventParked, EventLimited, EventReleased,
	EventReplan, EventLevel, EventBecameLate, EventBecameStale, EventWatch, EventSuccess, EventFailure, EventPostponed, EventInterrupted,
	EventOutdated, EventStarted, EventStatus, EventCreate, EventUpdate, EventRun, EventEnable, EventDisable, EventRemove, EventCancel,
	EventImport, EventOrphan,
}

// Refusals are the counters of messages that change no model.
var Refusals = []string{
	string(Stale), string(Duplicate), string(UnknownModel), string(Unchanged), string(Busy), string(Stopped), CounterMalformed, CounterNoUID,
	CounterUnknownType, CounterOversized, CounterForwarded, CounterBrokenModel,
}

// Particulars are the counters of what was particular about a transition.
var Particulars = []string{
	CounterRetry, CounterUnchanged, CounterExhausted, CounterFinalFailure, CounterRecovered, CounterLate, CounterPolicyError, CounterHeld,
	CounterFreshAgain, CounterIgnored, CounterRetries, CounterRetriesHelped, CounterRetriedCycles, CounterCircuitOpened, CounterCircuitClosed,
}
