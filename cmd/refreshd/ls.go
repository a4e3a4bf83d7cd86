package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/listing"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// selection is which models are to be listed, and in what order.
type selection struct {
	selector, status, prefix string
	limit                    int
	sort, after              string

	listing.Which
	nothing bool // no uid can begin like that
}

// statuses are those that --status knows.
var statuses = model.SelectStatuses

func lsCommand(a *app) *cobra.Command {
	var which selection
	command := &cobra.Command{
		Use: "ls", Short: "List models, in no order or sorted, all or page by page", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := which.read(); err != nil {
				return err
			}
			return a.withStored(command.Context(), func(queue *store.Queue) error { return a.ls(command.Context(), queue, &which) })
		},
	}
	bindSelector(command.Flags(), &which.selector)
	command.Flags().StringVar(&which.status, "status", "", "only models with this `STATUS`, as -l status=STATUS: "+strings.Join(statuses, ", "))
	command.Flags().StringVar(&which.prefix, "prefix", "", "only models whose uid begins with `TEXT`, as -l uid=TEXT*")
	command.Flags().IntVar(&which.limit, "limit", 0, "at most `N` models (default all); what to say for the next page is told on stderr")
	command.Flags().StringVar(&which.after, "after", "", "the page behind the one that has told this `CURSOR`")
	command.Flags().StringVar(&which.sort, "sort", "", "`ORDER`: due, those that wait by their next start, or failing, those that fail by since when (default none)")
	return command
}

var orders = []string{listing.SortDue, listing.SortFailing}

// read checks what the flags say, together.
func (l *selection) read() (err error) {
	if l.status != "" {
		if err := oneOf("status", l.status, statuses); err != nil {
			return err
		}
	}
	if l.sort != "" {
		if err := oneOf("sort", l.sort, orders); err != nil {
			return err
		}
	}
	if l.nothing = l.prefix != "" && !document.IsUID(l.prefix); l.nothing {
		l.prefix = ""
	}
	var terms []string
	for _, term := range []string{l.selector, prefixed("status=", l.status, ""), prefixed("uid=", l.prefix, "*")} {
		if term != "" {
			terms = append(terms, term)
		}
	}
	if l.Picks, err = model.ParseSelector(strings.Join(terms, ",")); err != nil {
		return usageError{err}
	}
	if l.From, err = listing.ReadPage(l.after, l.sort); err != nil {
		return usageError{err}
	}
	l.Sort = l.sort
	return nil
}

func prefixed(before, text, behind string) string {
	if text == "" {
		return ""
	}
	return before + text + behind
}

// errEnough ends a walk over the models early.
var errEnough = errors.New("enough")

// lister prints models until there are enough.
type lister struct {
	*app
	which  *selection
	listed int
	last   listing.Page // where the model stands that was printed last
}

func (a *app) ls(ctx context.Context, queue *store.Queue, which *selection) error {
	if !a.json() {
		fmt.Fprintf(a.stdout, lsRow, "UID", "STATUS", "REFRESH AT", "NO", "BECAUSE", "LAST REASON")
	}
	if which.nothing {
		return nil
	}
	l := &lister{app: a, which: which}
	err := listing.Walk(ctx, queue, which.Which, l.print)
	if errors.Is(err, errEnough) {
		fmt.Fprintf(a.stderr, "there may be more: --after %s\n", l.last)
		return nil
	}
	return err
}

// print prints models; errEnough: there may be no more.
func (l *lister) print(found []listing.Listed, _ listing.Page) error {
	var lines strings.Builder
	for _, one := range found {
		if err := l.line(&lines, one.Shown); err != nil {
			return err
		}
		l.last = one.Page
		if l.listed++; l.listed == l.which.limit {
			break
		}
	}
	if _, err := io.WriteString(l.stdout, lines.String()); err != nil {
		return err
	}
	if l.which.limit > 0 && l.listed >= l.which.limit {
		return errEnough
	}
	return nil
}

// lsRow has fixed widths, because the rows are printed as they are found.
const lsRow = "%-32s  %-10s  %-24s  %3v  %-40s  %s\n"

func (l *lister) line(to io.Writer, s explain.Shown) error {
	if l.json() {
		return print.JSONLine(to, listedView{viewModel(s), s.Because, s.Reason})
	}
	reason := s.Reason
	if since := s.Record.FailingSince; !since.IsZero() {
		reason = "since " + model.FormatTime(since) + ": " + reason
	}
	row := fmt.Sprintf(lsRow, plain(s.Record.UID), s.Status, model.FormatTime(s.Record.RefreshAt), s.Record.AttemptNo, plain(s.Because), plain(reason))
	_, err := io.WriteString(to, strings.TrimRight(row, " \n")+"\n")
	return err
}

// listedView is a model in a list as -o json shows it.
type listedView struct {
	modelView

	// Because is why it waits as it does, as explain says.
	Because string `json:"because"`
	// LastReason is why it is disabled, or why it failed last; "": it neither fails nor is disabled.
	LastReason string `json:"last_reason"`
}
