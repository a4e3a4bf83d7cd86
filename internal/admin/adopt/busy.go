package adopt

import (
	"time"

	"github.com/refreshd/refreshd/model/schedule"
)

const minutesOfWeek = 7 * 24 * 60

// Busiest is how many models start in the same minute of a week, at most: a start on a day of a month may fall on each of its weekdays within a year.
func (a *Adopted) Busiest() (most int) {
	in, err := schedule.Zone(a.options.Timezone)
	if err != nil {
		return 0
	}
	type times struct{ rule, zone string }
	jobs, starts := make(map[times]int), make(map[times]*schedule.Schedule)
	for _, j := range a.jobs {
		jobs[times{j.rule, j.zone}]++
		starts[times{j.rule, j.zone}] = j.starts
	}
	var week [minutesOfWeek]int
	for one, count := range jobs {
		for minute := range minutesOf(starts[one], a.options.Now, in) {
			week[minute] += count
			most = max(most, week[minute])
		}
	}
	return most
}

// minutesOf are the minutes of a week, on the clock of a zone, in which a schedule starts within a year. After as many starts as a week has minutes all
// of a dense one are found.
func minutesOf(s *schedule.Schedule, after time.Time, in *time.Location) map[int]bool {
	found, end := make(map[int]bool), after.AddDate(1, 0, 0)
	for range minutesOfWeek {
		at, ok := s.Next(after)
		if !ok || at.After(end) {
			break
		}
		wall := at.In(in)
		found[(int(wall.Weekday())*24+wall.Hour())*60+wall.Minute()] = true
		after = at
	}
	return found
}
