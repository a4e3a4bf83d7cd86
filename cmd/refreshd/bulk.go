package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

func bulkCommand(a *app) *cobra.Command {
	command := group("bulk", "Look at what is being done to many models at once, and cancel it",
		&cobra.Command{Use: "ls", Short: "List the bulks that are not over, and those that were within a day", Args: cobra.NoArgs, RunE: a.onQueue(a.listBulks)},
		&cobra.Command{Use: "show ID", Short: "Show how far a bulk is", Args: cobra.ExactArgs(1), RunE: a.onQueue(a.showBulk)},
		&cobra.Command{Use: "cancel ID", Short: "End a bulk; what it has done stays done", Args: cobra.ExactArgs(1), RunE: a.onQueue(a.cancelBulk)})
	command.Long = `refreshd model run, enable, disable and rm with -l begin a bulk: a wish about all models that a selector picks. Pollers carry it out little by
little, at the rate that was asked for, and go on where they were when they are restarted. A policy whose rule has changed begins one too.`
	return command
}

// bulkView is a bulk as -o json shows it; of a queue of several parts, in all of them.
type bulkView struct {
	ID       string           `json:"id"`
	Action   model.BulkAction `json:"action"`
	Selector string           `json:"selector"` // "": all models
	Rate     string           `json:"rate"`     // in each part; "": no bound
	Force    bool             `json:"force"`
	By       string           `json:"by"`
	State    store.BulkState  `json:"state"`
	Since    *string          `json:"since"`
	EndedAt  *string          `json:"ended_at"`
	Size     int64            `json:"size"`   // about how many models it meets; 0: nobody knows
	Seen     int64            `json:"seen"`   // models that were looked at
	Picked   int64            `json:"picked"` // those of them that the selector picks
	Done     int64            `json:"done"`   // those of them that were changed
	Refused  int64            `json:"refused"`
	// Others are those that were not changed, by the reason: the refused ones, and those of which nothing was to be changed.
	Others  map[model.Outcome]int64 `json:"others"`
	Problem string                  `json:"problem"`
}

// String tells a bulk in a line.
func (v bulkView) String() string {
	text := fmt.Sprintf("%s %s: %s seen, %d picked, %d done", v.ID, v.State, words.Count(int(v.Seen), "model", "models"), v.Picked, v.Done)
	for _, outcome := range slices.Sorted(maps.Keys(v.Others)) {
		text += fmt.Sprintf(", %d %s", v.Others[outcome], strings.ReplaceAll(string(outcome), "_", " "))
	}
	return text
}

func newBulkView(b *store.Bulk) bulkView {
	v := bulkView{
		ID: b.ID, Action: b.Action, Selector: b.Selector.String(), Rate: b.Rate.String(), Force: b.Force, By: b.By, State: b.State(), Since: optional(b.Since),
		Size: b.Size, Seen: b.Seen, Picked: b.Picked, Done: b.Done, Refused: b.Refusals(), Others: b.Others, Problem: b.Problem,
	}
	if v.Others == nil {
		v.Others = map[model.Outcome]int64{}
	}
	if v.State.Over() {
		v.EndedAt = optional(b.EndedAt)
	}
	return v
}

// readBulk reads a bulk that must be there.
func readBulk(ctx context.Context, queue *store.Queue, id string) (bulkView, error) {
	bulk, found, err := queue.Fleet().FindBulk(ctx, id)
	if err == nil && !found {
		err = fmt.Errorf("%s: expected the id of a bulk that is not over, or was within a day, found none of that name", plain(id))
	}
	return newBulkView(&bulk), err
}

func (a *app) listBulks(ctx context.Context, queue *store.Queue, _ []string) error {
	bulks, err := queue.Fleet().Bulks(ctx)
	if err != nil {
		return err
	}
	if a.json() {
		return printJSONLines(a.stdout, bulks, func(b *store.Bulk) any { return newBulkView(b) })
	}
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	t := a.newTable("ID", "STATE", "SINCE", "BY", "SEEN", "PICKED", "DONE", "REFUSED", "SELECTOR")
	for i := range bulks {
		v := newBulkView(&bulks[i])
		t.row(v.ID, string(v.State), instant(v.Since), v.By, count(v.Seen), count(v.Picked), count(v.Done), count(v.Refused), cmp.Or(v.Selector, "all"))
	}
	return t.Flush()
}

func (a *app) showBulk(ctx context.Context, queue *store.Queue, ids []string) error {
	v, err := readBulk(ctx, queue, ids[0])
	if err != nil {
		return err
	}
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	ended := ""
	if v.EndedAt != nil {
		ended = *v.EndedAt
	}
	pairs := [][2]string{
		{"id", v.ID}, {"state", string(v.State)}, {"problem", v.Problem}, {"action", string(v.Action)}, {"selector", cmp.Or(v.Selector, "all models")}, {"rate", v.Rate},
		{"force", mark(v.Force, "yes")}, {"by", v.By}, {"since", instant(v.Since)}, {"ended", ended},
		{"seen", count(v.Seen) + mark(v.Size > 0, fmt.Sprintf(" of about %d", v.Size))}, {"picked", count(v.Picked)}, {"done", count(v.Done)}, {"refused", count(v.Refused)},
	}
	for _, outcome := range slices.Sorted(maps.Keys(v.Others)) {
		pairs = append(pairs, [2]string{strings.ReplaceAll(string(outcome), "_", " "), count(v.Others[outcome])})
	}
	return a.print(v, pairs)
}

func (a *app) cancelBulk(ctx context.Context, queue *store.Queue, ids []string) error {
	cancelled, err := queue.Fleet().CancelBulk(ctx, ids[0])
	if err != nil {
		return err
	}
	v, err := readBulk(ctx, queue, ids[0])
	if err != nil {
		return err
	}
	if !cancelled {
		return fmt.Errorf("%s: expected a bulk that is not over, found it %s", v.ID, v.State)
	}
	if a.json() {
		return a.printJSON(v)
	}
	_, err = fmt.Fprintln(a.stdout, v)
	return err
}
