package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

func explainCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "explain UID", Short: "Tell why a model refreshes when it does, and what happens next", Args: oneUID,
		Long: `Tell the story of a model: what it is and does, how its last attempts ended and what was decided then, with the numbers, and
what would follow if the next attempt succeeds, fails, or is never answered.`,
		RunE: func(command *cobra.Command, uids []string) error {
			return a.withStore(command.Context(), func(store *scripts.Store) error {
				return a.explain(command.Context(), store, uids[0])
			})
		},
	}
}

// explanation is a model explained, as -o json shows it.
type explanation struct {
	UID        string       `json:"uid"`
	Status     model.Status `json:"status"`
	RefreshAt  *string      `json:"refresh_at"`
	RefreshWhy string       `json:"refresh_why"`
	GivesUpAt  *string      `json:"gives_up_at"`
	Story      []string     `json:"story"`
	Next       forecastView `json:"next"`
}

func (a *app) explain(ctx context.Context, store *scripts.Store, uid string) error {
	found, attempts, err := readPast(ctx, store, uid)
	if err != nil {
		return err
	}
	s, record := narrate(found), found.record
	forecast := record.Forecast(found.now)
	if a.json() {
		return a.printJSON(explanation{
			UID: uid, Status: found.status, RefreshAt: optional(record.RefreshAt), RefreshWhy: record.Why,
			GivesUpAt: optional(record.GivesUpAt()), Story: s.story(attempts), Next: viewForecast(forecast),
		})
	}
	for _, line := range append(s.story(attempts), s.forecast(forecast)...) {
		fmt.Fprintln(a.stdout, plain(line))
	}
	return nil
}

// narrator tells of one model at one instant, on the clock of its schedule.
type narrator struct {
	shown
	m    *model.Model
	zone *time.Location
}

func narrate(s shown) *narrator {
	return &narrator{shown: s, m: &s.record.Model, zone: zoneOf(&s.record.Model)}
}

// clock is a time of day, with its day if that is not today.
func (s *narrator) clock(at time.Time) string {
	at = at.In(s.zone)
	layout := "15:04"
	if at.Second() > 0 {
		layout = time.TimeOnly
	}
	switch now := s.now.In(s.zone); {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
	case at.Year() == now.Year():
		layout = "Mon 2 Jan " + layout
	default:
		layout = "2 Jan 2006 " + layout
	}
	return at.Format(layout)
}

// when is a time with its distance from now.
func (s *narrator) when(at time.Time) string {
	return s.clock(at) + " (" + distance(at, s.now) + ")"
}
