package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

var journalPage = page{path: "journal", title: "Journal", nav: true, file: "journal", read: readJournal, live: []string{"journal-list"}}

const (
	// maxEntries is how many entries of the journal a page looks at.
	maxEntries = 10_000
	// maxPause is between entries that one row tells together.
	maxPause = time.Minute
)

type journal struct {
	By, UID  string
	Kind     string // all: also transitions that nobody asked for
	First    bool
	Rows     []journalRow
	Next     string // where the next page begins; "": there is none
	Searched bool   // the page ended before it was full
}

// journalRow tells what was done to a model, or to several one after the other.
type journalRow struct {
	At     time.Time // of the last one
	Who    string    // "": it happened to the models
	Did    string
	About  string // what is no model, such as the key of a circuit
	Named  []link // models, at most three
	Models int
	Filter link // of the bulk that did it; no address: nobody knows
	Reason string

	event model.Event
	first time.Time
}

// More is how many models are not named.
func (r *journalRow) More() int { return r.Models - len(r.Named) }

// deeds are what people ask for; happenings are the other transitions.
var (
	deeds = map[model.Event]string{
		model.EventRun: "ran", model.EventEnable: "enabled", model.EventDisable: "disabled", model.EventCreate: "created", model.EventUpdate: "changed",
		model.EventRemove: "removed", model.EventImport: "imported", model.EventCancel: "took back the attempt of",
		"worker_quiet": "asked to be quiet:", "worker_stop": "asked to stop:", "worker_resume": "asked to go on:",
		"circuit_opened": "opened the circuit of", "circuit_closed": "closed the circuit of", "new_error": "met a new cause of failures:",
	}
	happenings = map[model.Event]string{
		model.EventStart: "started", model.EventStarted: "got a worker", model.EventTimeout: "timed out", model.EventWithdrawn: "found no worker in time",
		model.EventTaken: "got a worker late", model.EventQueueTimeout: "began too late", model.EventSkipped: "skipped a missed refresh",
		model.EventGiveUp: "gave up", model.EventParked: "began to wait", model.EventLimited: "began to wait for a slot", model.EventReleased: "stopped waiting",
		model.EventReplan: "got a new plan", model.EventLevel: "got a new phase", model.EventWatch: "got a new freshness", model.EventSuccess: "succeeded",
		model.EventFailure: "failed", model.EventInterrupted: "had to stop", model.EventOutdated: "reported about an old payload",
		model.EventOrphan: "left an index without a model",
	}
)

func (req *request) newJournalRow(e *model.JournalEntry) journalRow {
	row := journalRow{At: e.At, first: e.At, event: e.Event, Who: e.By, Did: deeds[e.Event], About: e.About, Reason: cmp.Or(e.Reason, e.ErrorType)}
	switch {
	case row.Did == "":
		row.Did = cmp.Or(happenings[e.Event], strings.ReplaceAll(string(e.Event), "_", " "))
	case e.Event == model.EventDisable:
		row.Reason = e.DisabledReason
	}
	if deeds[e.Event] != "" && e.By == "" {
		row.Who = "somebody"
		if e.UID == "" {
			row.Who = "refreshd"
		}
	}
	if e.UID != "" {
		row.Models, row.Named = 1, []link{{Text: e.UID, Address: req.Link("model", "uid", e.UID)}}
	}
	return row
}

// add takes in another row, which is of before; false: they do not belong together.
func (r *journalRow) add(other *journalRow) bool {
	if other.Models == 0 || r.event != other.event || r.Who != other.Who || r.Reason != other.Reason || r.first.Sub(other.At) > maxPause ||
		slices.Contains(r.Named, other.Named[0]) {
		return false
	}
	r.first, r.Models = other.At, r.Models+1
	if len(r.Named) < 3 {
		r.Named = append(r.Named, other.Named[0])
	}
	return true
}

func readJournal(ctx context.Context, req *request) (any, error) {
	j := &journal{By: strings.TrimSpace(req.get("by")), UID: strings.TrimSpace(req.get("uid")), Kind: req.get("kind"), First: req.get("before") == ""}
	looked, behind := 0, ""
	err := req.queue.Report().Recent(ctx, req.get("before"), func(position string, e model.JournalEntry) error {
		if looked++; looked > maxEntries {
			j.Searched = true
			return errFull
		}
		if (j.Kind == "all" || e.By != "") && (j.By == "" || strings.EqualFold(e.By, j.By)) && (j.UID == "" || e.UID == j.UID) {
			row, last := req.newJournalRow(&e), len(j.Rows)-1
			switch {
			case last >= 0 && j.Rows[last].add(&row):
			case len(j.Rows) == maxRows:
				return errFull
			default:
				j.Rows = append(j.Rows, row)
			}
		}
		behind = position
		return nil
	})
	if errors.Is(err, errFull) {
		j.Next, err = behind, nil
	}
	if err != nil {
		return nil, err
	}
	return j, j.findBulks(ctx, req)
}

// findBulks says of what was done to several models which filter picked them, as far as bulks are known: for a day.
func (j *journal) findBulks(ctx context.Context, req *request) error {
	if !slices.ContainsFunc(j.Rows, func(row journalRow) bool { return row.Models > 1 }) {
		return nil
	}
	bulks, err := req.operator.Bulks(ctx)
	for i := range j.Rows {
		row := &j.Rows[i]
		for _, bulk := range bulks {
			if row.Models > 1 && string(bulk.Action) == string(row.event) && bulk.By == row.Who && !bulk.Since.After(row.first) &&
				(bulk.EndedAt.IsZero() || !bulk.EndedAt.Before(row.At)) {
				row.Filter = link{Text: cmp.Or(bulk.Selector, "the queue"), Address: req.Link("models", "l", bulk.Selector)}
			}
		}
	}
	return err
}
