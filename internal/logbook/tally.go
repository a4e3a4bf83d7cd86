package logbook

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
)

// Tally logs what the rounds of a loop have done, from one goroutine only: each round at debug level, and the sums of a minute at info level. The sums
// of the first round, and of the first one after a minute without any, are logged at once.
type Tally struct {
	message string
	log     *zerolog.Logger
	rounds  int
	sums    []Count
	logged  time.Time // the last sums
}

// Count is a number of things of a round, with the name of their field in the log.
type Count struct {
	Name   string
	Number int
}

// Of is so many things of a name.
func Of(name string, number int) Count { return Count{name, number} }

// NewTally returns the tally of a loop. The message is that of each line, such as "poller: round".
func NewTally(message string, log *zerolog.Logger) *Tally { return &Tally{message: message, log: log} }

// Add counts a round. The counts of all rounds have the same names.
func (t *Tally) Add(counts ...Count) {
	t.write(zerolog.DebugLevel, counts)
	if t.rounds++; t.rounds == 1 {
		t.sums = counts
		return
	}
	for i, one := range counts {
		t.sums[i].Number += one.Number
	}
}

// Log logs the sums at now, unless others were logged less than a minute ago. Zero: at once.
func (t *Tally) Log(now time.Time) {
	if t.rounds == 0 || !now.IsZero() && backoff.Recent(t.logged, now, time.Minute) {
		return
	}
	t.write(zerolog.InfoLevel, append([]Count{Of("rounds", t.rounds)}, t.sums...))
	t.rounds, t.logged = 0, now
}

func (t *Tally) write(level zerolog.Level, counts []Count) {
	line := t.log.WithLevel(level)
	for _, one := range counts {
		line = line.Int(one.Name, one.Number)
	}
	line.Msg(t.message)
}
