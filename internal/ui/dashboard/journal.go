package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
)

var journalPage = page{path: "journal", title: "Journal", nav: true, file: "journal", read: readJournal, live: []string{"journal-list"}}

const (
	// maxEntries bounds the entries that a page reads.
	maxEntries = 10_000
	// maxPause bounds the time between entries of one row.
	maxPause = time.Minute
)

type journal struct {
	By, UID  string
	Kind     string // all: also transitions without an operator
	First    bool
	Rows     []journalRow
	Next     string // where the next page begins; "": there is none
	Searched bool   // the page ended before it was full
}

// journalRow is what was done to a model, or to several one after the other.
type journalRow struct {
	At     time.Time // of the last one
	Who    string    // "": it happened to the models
	Did    string
	About  string // such as the key of a circuit
	Named  []link // models, at most three
	Models int
	Reason string

	event model.Event
	first time.Time
}

// More is how many models are not named.
func (r *journalRow) More() int { return r.Models - len(r.Named) }

// deeds are acts of people; happenings are other transitions whose name fits no sentence.
var (
	deeds = map[model.Event]string{
		model.EventRun: "ran", model.EventEnable: "enabled", model.EventDisable: "disabled", model.EventCreate: "created", model.EventUpdate: "changed",
		model.EventRemove: "removed", model.EventImport: "imported", model.EventAccept: "accepted the result of", model.EventCancel: "took back the attempt of",
		"worker_quiet": "quieted the worker", "worker_stop": "stopped the worker", "worker_resume": "resumed the worker", "zones": "planned anew by newer zone data",
		"circuit_opened": "opened the circuit of", "circuit_closed": "closed the circuit of", "new_error": "met a new fingerprint:",
	}
	happenings = map[model.Event]string{
		model.EventStart: "started", model.EventStarted: "got a worker", model.EventSuccess: "succeeded", model.EventFailure: "failed", model.EventSuspect: "waits for a verdict", model.EventTimeout: "timed out",
		model.EventTaken: "got a worker late", model.EventQueueTimeout: "began too late", model.EventWorkerDied: "lost its worker", model.EventOrphan: "left an index without a model",
		model.EventReplan: "got a new plan", model.EventLevel: "got a new phase", model.EventWatch: "got a new freshness", model.EventMend: "was mended", model.EventParked: "began to wait", model.EventReleased: "stopped waiting", model.EventGiveUp: "gave up",
	}
)

func (req *request) newJournalRow(e *model.JournalEntry) journalRow {
	row := journalRow{At: e.At, first: e.At, event: e.Event, Who: e.By, Did: deeds[e.Event], About: e.About, Reason: cmp.Or(e.Reason, e.ErrorType)}
	switch {
	case e.By != "" && e.Event == model.EventSuccess:
		row.Did = deeds[model.EventAccept]
	case e.By != "" && e.Event == model.EventFailure:
		row.Did = "rejected the result of"
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

// add merges another row, which happened before; false: they do not belong together.
func (r *journalRow) add(other *journalRow) bool {
	if other.Models == 0 || r.event != other.event || r.Who != other.Who || r.Reason != other.Reason || r.first.Sub(other.At).Abs() > maxPause ||
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
	err := report.OfQueue(req.queue).Recent(ctx, req.get("before"), func(position string, e model.JournalEntry) error {
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
	return j, err
}
