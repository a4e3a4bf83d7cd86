package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/attention"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

func statsCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "stats", Short: "Show what the queue holds now, who serves it, and what it has counted", Args: cobra.NoArgs, RunE: a.onStored(a.stats)}
}

// statsView is the queue as -o json shows it.
type statsView struct {
	// Findings are what is stopped or wrong, the most important first.
	Findings []attention.Finding `json:"findings"`

	Queue    string           `json:"queue"`
	Parts    int              `json:"parts,omitempty"` // of a queue that has several
	At       string           `json:"at"`
	Due      int64            `json:"due"`
	Urgent   int64            `json:"urgent"` // of those that are due
	Waiting  int64            `json:"waiting"`
	Running  int64            `json:"running"`
	Input    int64            `json:"input"`
	Output   int64            `json:"output"`
	Control  int64            `json:"control"`
	Claimed  int64            `json:"claimed"`
	Failing  int64            `json:"failing"`
	Causes   int              `json:"causes"` // signatures by which models are failing
	Rejected int64            `json:"rejected"`
	Journal  int64            `json:"journal"`
	Outbox   int64            `json:"outbox"`
	Counters map[string]int64 `json:"counters"`
	// Freshness is how many models keep what their policies promise.
	Freshness freshnessShare `json:"freshness"`
	// Replanning are the policies whose models are being planned anew, as they have changed.
	Replanning []replanView `json:"replanning"`

	Living livingView `json:"living"`

	retryStats
}

// retryStats count retries, of a model or of all models of a queue.
type retryStats struct {
	TotalRetries      int64 `json:"total_retries"`      // attempts that were not the first of their cycle and have ended
	SuccessfulRetries int64 `json:"successful_retries"` // those of them that succeeded
	RetriedCycles     int64 `json:"retried_cycles"`     // cycles that needed a retry
	// RetrySuccessRate is the share of these cycles that a retry saved, 0 to 1; null: none needed one.
	RetrySuccessRate *float64 `json:"retry_success_rate"`
}

func newRetryStats(total, successful, cycles int64) retryStats {
	stats := retryStats{TotalRetries: total, SuccessfulRetries: successful, RetriedCycles: cycles}
	if cycles > 0 {
		stats.RetrySuccessRate = new(float64(successful) / float64(cycles))
	}
	return stats
}

func (s retryStats) summary() string {
	if s.RetrySuccessRate == nil {
		return ""
	}
	return fmt.Sprintf("%d, %d of %d cycles that needed one were saved (%.0f%%)", s.TotalRetries, s.SuccessfulRetries, s.RetriedCycles, *s.RetrySuccessRate*100)
}

func (a *app) stats(ctx context.Context, queue *store.Queue, _ []string) error {
	s, err := attention.Read(ctx, queue)
	if err != nil {
		return err
	}
	living, err := readLiving(ctx, queue)
	if err != nil {
		return err
	}
	v := statsView{
		Findings: s.Findings(), Living: living, Queue: queue.Name, At: model.FormatTime(s.At), Due: s.Due, Urgent: s.Urgent, Waiting: s.Waiting, Running: s.Running,
		Input: s.Input, Output: s.Output, Control: s.Control, Claimed: s.Claimed,
		Failing: s.Failing, Causes: len(s.Errors), Rejected: s.Rejected, Journal: s.Journal, Outbox: s.Outbox, Counters: s.Counters,
		retryStats: newRetryStats(s.Retries()), Freshness: newFreshnessShare(s.Freshness),
	}
	if len(queue.Parts) > 1 {
		v.Parts = len(queue.Parts)
	}
	if v.Replanning, err = readReplans(ctx, queue); err != nil {
		return err
	}
	if !a.json() {
		v.tellFindings(a.stdout)
	}
	return a.print(v, v.pairs())
}

// tellFindings begins with what is stopped or wrong, each with the command that shows more.
func (v *statsView) tellFindings(to io.Writer) {
	if len(v.Findings) == 0 {
		fmt.Fprintln(to, attention.None)
	}
	for _, one := range v.Findings {
		fmt.Fprintf(to, "%s  -> %s\n", plain(one.Text), one.Command)
	}
	fmt.Fprintln(to)
}

func (v statsView) pairs() [][2]any {
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	causes := mark(v.Failing > 0, fmt.Sprintf("%d, by which %s: refreshd failures", v.Causes, words.Count(int(v.Failing), "model is failing", "models are failing")))
	pairs := [][2]any{
		{"queue", v.Queue}, {"parts", mark(v.Parts != 0, strconv.Itoa(v.Parts))}, {"at", v.At},
		{"due", count(v.Due) + "  to be started now"}, {"urgent", count(v.Urgent) + "  of them, asked for at once and started first"}, {"waiting", count(v.Waiting) + "  for their time"},
		{"running", count(v.Running) + "  queued or in the hands of workers"},
		{"input", count(v.Input) + "  attempts that no worker has taken"},
		{"output", count(v.Output) + "  messages of workers that no poller has taken"},
		{"control", count(v.Control) + "  messages of applications that no poller has taken"},
		{"claimed", count(v.Claimed) + "  messages in the hands of pollers"},
		{"causes", causes},
		{"rejected", count(v.Rejected) + "  unusable messages kept"},
		{"journal", count(v.Journal) + "  transitions kept"}, {"outbox", count(v.Outbox) + "  notifications to deliver"},
		{"dispatchers", partyText(v.Living.Dispatchers, v.Parts)}, {"pollers", partyText(v.Living.Pollers, v.Parts)},
		{"workers", partyText(v.Living.Workers, v.Parts)},
		{"freshness", v.Freshness.String()},
		{"retries", v.summary()},
	}
	for _, walk := range v.Replanning {
		pairs = append(pairs, [2]any{"replanning", walk.String()})
	}
	for _, name := range slices.Sorted(maps.Keys(v.Counters)) {
		pairs = append(pairs, [2]any{"counted " + name, count(v.Counters[name])})
	}
	return pairs
}
