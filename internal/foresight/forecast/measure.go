package forecast

import (
	"time"

	"github.com/refreshd/refreshd/model"
)

// Length is how long the attempts of a model take that succeed, on average; 0: none is known, and they count as if they ended at once.
func Length(attempts []model.Attempt) time.Duration {
	sum, count := time.Duration(0), 0
	for _, attempt := range attempts {
		if attempt.Outcome == model.EventSuccess {
			sum, count = sum+attempt.Duration, count+1
		}
	}
	return sum / time.Duration(max(1, count))
}

// Ended counts by minute how many attempts workers have answered, as the journal tells. The busiest minute says what they can do at least.
type Ended map[time.Time]int

// Add counts an entry of the journal.
func (e Ended) Add(entry model.JournalEntry) {
	if entry.Event == model.EventSuccess || entry.Event == model.EventFailure {
		e[entry.At.Truncate(time.Minute)]++
	}
}

// Busiest is how many the busiest minute has; 0: there is none.
func (e Ended) Busiest() (most int) {
	for _, count := range e {
		most = max(most, count)
	}
	return most
}
