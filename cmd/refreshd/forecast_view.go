package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/internal/foresight/forecast"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// loadView is the starts of a period as -o json shows them.
type loadView struct {
	Starts      int     `json:"starts"`
	Peak        int     `json:"peak"` // starts in the fullest minute
	PeakAt      *string `json:"peak_at"`
	MinutesOver *int    `json:"minutes_over"` // with more starts than are drained; null: the drain is not known
	Backlog     *int    `json:"backlog"`      // the most attempts that are left at the end of a minute
	BacklogAt   *string `json:"backlog_at"`
	EmptyAt     *string `json:"empty_at"` // when the list is empty again after that; null: not within the period
}

func (s *fleet) load(c *forecast.Counts) loadView {
	v := loadView{Starts: c.Total(), Peak: c.Most()}
	if v.Peak > 0 {
		v.PeakAt = optional(c.At(c.Peak()))
	}
	if s.drain > 0 {
		backlog := c.Backlog(s.drain, s.queued, s.now)
		v.MinutesOver, v.Backlog = new(c.Over(s.drain)), &backlog.Most
		v.BacklogAt, v.EmptyAt = optional(backlog.At), optional(backlog.EmptyAt)
	}
	return v
}

// minuteView is one minute of a forecast.
type minuteView struct {
	At     string `json:"at"`
	Starts int    `json:"starts"`
}

// outlookView is a forecast as -o json shows it.
type outlookView struct {
	Queue        string           `json:"queue"`
	From         string           `json:"from"`
	To           string           `json:"to"`
	Models       int              `json:"models"`
	Disabled     int              `json:"disabled"`
	Parked       int              `json:"parked"`
	Queued       int              `json:"queued"`
	Drain        *float64         `json:"drain_per_minute"` // null: not known
	DrainSource  string           `json:"drain_source"`
	Load         loadView         `json:"load"`
	SpreadLength string           `json:"spread_length"` // "": a tenth of each interval
	Spread       loadView         `json:"with_spread"`
	Worst        []minuteView     `json:"worst_minutes"`
	By           string           `json:"by"`
	Groups       []forecast.Group `json:"groups_at_peak"`
	PerMinute    []int            `json:"starts_per_minute"` // from the minute of from on
}

func (o *outlook) view() outlookView {
	v := outlookView{
		Queue: o.queue.Name, From: model.FormatTime(o.now), To: model.FormatTime(o.to), Models: o.models, Disabled: o.disabled, Parked: o.parked,
		Queued: o.queued, DrainSource: o.measured, Load: o.load(o.counts), SpreadLength: phaseText(o.length), Spread: o.load(o.spread),
		Worst: []minuteView{}, By: o.by, Groups: o.groups, PerMinute: o.counts.PerMinute,
	}
	if o.drain > 0 {
		v.Drain = &o.drain
	} else {
		v.DrainSource = "not known"
	}
	for _, minute := range o.counts.Worst(mostGroups) {
		v.Worst = append(v.Worst, minuteView{model.FormatTime(o.counts.At(minute)), o.counts.PerMinute[minute]})
	}
	return v
}

func (a *app) showOutlook(o *outlook) error {
	switch a.output {
	case outputJSON:
		return a.printJSON(o.view())
	case outputSVG:
		return chart.LoadSVG(a.stdout, chart.Load{
			Title: fmt.Sprintf("%s: %s ahead", o.queue.Name, document.FormatDuration(o.to.Sub(o.now))), Digest: o.digest(), From: o.counts.From,
			PerMinute: o.counts.PerMinute, Other: o.spread.PerMinute, OtherName: o.spreadName(), Drain: o.drain,
		})
	default:
		return a.outlookTable(o)
	}
}

func (o *outlook) spreadName() string {
	if o.length == 0 {
		return "with a spread of a tenth of each interval"
	}
	return "with a spread of " + document.FormatDuration(o.length)
}

// digest is a forecast in a line.
func (o *outlook) digest() string {
	return words.Count(o.models, "model", "models") + ", " + words.Count(o.counts.Total(), "start", "starts") + ", " + o.loadText(o.counts)
}

// loadText says what is to be known of a load.
func (s *fleet) loadText(c *forecast.Counts) string {
	v := s.load(c)
	if v.Peak == 0 {
		return "nothing starts"
	}
	text := fmt.Sprintf("peak %d in the minute %s", v.Peak, shortTime(c.At(c.Peak())))
	if s.drain == 0 {
		return text
	}
	return text + fmt.Sprintf(", %d of %d minutes over the drain", *v.MinutesOver, len(c.PerMinute))
}

func shortTime(at time.Time) string { return at.UTC().Format("2006-01-02 15:04Z") }

// backlogText says what piles up.
func (s *fleet) backlogText(c *forecast.Counts) string {
	if s.drain == 0 {
		return ""
	}
	switch b := c.Backlog(s.drain, s.queued, s.now); {
	case b.Most == 0:
		return "none at the end of any minute"
	case b.EmptyAt.IsZero():
		return fmt.Sprintf("%d at %s, and not drained by the end", b.Most, shortTime(b.At))
	default:
		return fmt.Sprintf("%d at %s, drained by %s", b.Most, shortTime(b.At), shortTime(b.EmptyAt))
	}
}

func (s *fleet) drainText() string {
	if s.drain == 0 {
		return "not known: nothing has run lately; --drain names it"
	}
	return fmt.Sprintf("%.4g a minute, %s", s.drain, s.measured)
}

func (a *app) outlookTable(o *outlook) error {
	idle := ""
	if o.disabled+o.parked > 0 {
		idle = fmt.Sprintf("%d disabled, %d parked now", o.disabled, o.parked)
	}
	err := a.print(nil, [][2]any{
		{"models", strconv.Itoa(o.models)}, {"stopped", idle}, {"starts", strconv.Itoa(o.counts.Total())}, {"drain", o.drainText()},
		{"load", o.loadText(o.counts)}, {"backlog", o.backlogText(o.counts)}, {o.spreadName(), o.loadText(o.spread)},
	})
	if err != nil || o.counts.Total() == 0 {
		return err
	}
	fmt.Fprintln(a.stdout)
	if err := a.printBars(o.counts); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	worst := a.newTable("WORST MINUTES", "STARTS")
	for _, minute := range o.counts.Worst(mostGroups) {
		worst.Row(shortTime(o.counts.At(minute)), strconv.Itoa(o.counts.PerMinute[minute]))
	}
	if err := worst.Flush(); err != nil || o.by == "" {
		return err
	}
	fmt.Fprintln(a.stdout)
	groups := a.newTable("AT THE PEAK, BY "+strings.ToUpper(o.by), "STARTS")
	for _, group := range o.groups {
		groups.Row(group.Name, strconv.Itoa(group.Starts))
	}
	return groups.Flush()
}

// rowLengths are the minutes that a row may tell of; the first that gives few enough rows is taken.
var rowLengths = []int{1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440}

const (
	mostRows  = 30
	barLength = 40 // characters
)

// rowLength is how many minutes a row tells of.
func rowLength(minutes int) int {
	for _, length := range rowLengths {
		if minutes <= mostRows*length {
			return length
		}
	}
	return 2 * rowLengths[len(rowLengths)-1]
}

// printBars prints the starts of a period in few rows, with a bar for the fullest minute of each.
func (a *app) printBars(c *forecast.Counts) error {
	length, most := rowLength(len(c.PerMinute)), c.Most()
	t := a.newTable("FROM", "STARTS", "IN ITS FULLEST MINUTE", "")
	for from, to := 0, 0; from < len(c.PerMinute); from = to {
		begins := int(c.At(from).Unix() / 60)
		to = min(len(c.PerMinute), from+length-begins%length) // rows begin at whole hours, or what they are long
		row := &forecast.Counts{PerMinute: c.PerMinute[from:to]}
		bar := strings.Repeat("#", (row.Most()*barLength+most-1)/most)
		t.Row(shortTime(c.At(from)), strconv.Itoa(row.Total()), strconv.Itoa(row.Most()), bar)
	}
	return t.Flush()
}
