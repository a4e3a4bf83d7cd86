package logbook

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestTheRoundsOfAMinuteAreOneLineAndNothingOfThemIsLeftOut(t *testing.T) {
	var text bytes.Buffer
	log := zerolog.New(&text).Level(zerolog.InfoLevel)
	tally, now := NewTally("poller: round", &log), time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)
	for range 150 { // seconds
		tally.Add(Of("claimed", 3), Of("applied", 2))
		tally.Log(now)
		now = now.Add(time.Second)
	}
	tally.Log(time.Time{})
	tally.Log(time.Time{})
	want := []string{
		`{"level":"info","rounds":1,"claimed":3,"applied":2,"message":"poller: round"}`,
		`{"level":"info","rounds":60,"claimed":180,"applied":120,"message":"poller: round"}`,
		`{"level":"info","rounds":60,"claimed":180,"applied":120,"message":"poller: round"}`,
		`{"level":"info","rounds":29,"claimed":87,"applied":58,"message":"poller: round"}`,
	}
	if got := text.String(); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestEachRoundIsLoggedAtDebugLevel(t *testing.T) {
	var text bytes.Buffer
	log := zerolog.New(&text)
	tally := NewTally("poller: round", &log)
	tally.Add(Of("claimed", 3))
	tally.Add(Of("claimed", 4))
	want := `{"level":"debug","claimed":3,"message":"poller: round"}` + "\n" + `{"level":"debug","claimed":4,"message":"poller: round"}` + "\n"
	if got := text.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
