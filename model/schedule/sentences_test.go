package schedule

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// meaning is what a sentence says, as the author of the sentence wrote it down.
type meaning struct {
	refused           bool
	rule, zone, start string
	spread            time.Duration
}

// readMeaning reads "DAILY;BYHOUR=6 + DAILY;BYHOUR=8; zone=Europe/Berlin".
func readMeaning(t *testing.T, text string) (m meaning) {
	t.Helper()
	if text == "refused" {
		return meaning{refused: true}
	}
	parts := strings.Split(text, "; ")
	m.rule = "RRULE:FREQ=" + strings.ReplaceAll(parts[0], " + ", "\nRRULE:FREQ=")
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "zone":
			m.zone = value
		case "start":
			m.start = value
		case "spread":
			var err error
			if m.spread, err = time.ParseDuration(value); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("expected zone, start or spread, found %q", part)
		}
	}
	return m
}

// occurrences are those of some years: the first ones, and those in the nights in which the clocks of Berlin change.
func (m meaning) occurrences(t *testing.T) (all []string) {
	t.Helper()
	zone, start := m.zone, m.start
	if zone == "" {
		zone = "Europe/Berlin"
	}
	if start == "" {
		start = "2027-01-01T00:00:00"
	}
	s, err := Parse(m.rule, zone, start)
	if err != nil {
		t.Fatalf("%s: %v", m.rule, err)
	}
	for _, from := range []string{"2026-12-31", "2027-03-27", "2027-05-31", "2027-10-30", "2028-02-28", "2030-12-30"} {
		after, err := time.Parse(time.DateOnly, from)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			next, ok := s.Next(after)
			if !ok {
				break
			}
			all, after = append(all, next.Format(time.RFC3339)), next
		}
	}
	return append(all, m.zone, m.start, fmt.Sprint(m.spread))
}

// misread tells how a sentence was read otherwise than it was meant; refused: it was not read.
func misread(t *testing.T, sentence string, m meaning) (wrong string, refused bool) {
	t.Helper()
	r, err := Read(sentence)
	if err == nil {
		_, err = Parse(r.Rule, r.Timezone, "2027-01-01")
	}
	switch {
	case err != nil:
		return "", true
	case m.refused:
		return "is read as " + r.Rule, false
	}
	got := meaning{rule: r.Rule, zone: r.Timezone, start: r.Dtstart, spread: r.Spread}
	if !slices.Equal(got.occurrences(t), m.occurrences(t)) {
		return fmt.Sprintf("is read as %+v, and means %+v", r, m), false
	}
	return "", false
}

func TestNoSentenceThatPeopleWriteIsMisread(t *testing.T) {
	text, err := os.ReadFile("testdata/sentences.txt")
	if err != nil {
		t.Fatal(err)
	}
	meant, read := 0, 0
	for line := range strings.Lines(string(text)) {
		sentence, said, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok || line[0] == '#' {
			continue
		}
		m := readMeaning(t, said)
		wrong, refused := misread(t, sentence, m)
		if wrong != "" {
			t.Errorf("%q %s", sentence, wrong)
		}
		if m.refused {
			continue
		}
		meant++
		if !refused {
			read++
		} else if _, err := Read(sentence); testing.Verbose() {
			t.Log(err)
		}
	}
	t.Logf("%d of %d sentences with one meaning are read", read, meant)
	if 100*read < 85*meant {
		t.Errorf("expected 85 %% of %d sentences to be read, found %d", meant, read)
	}
}
