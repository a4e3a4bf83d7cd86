package store

import (
	"encoding/json"
	"fmt"

	"github.com/refreshd/refreshd/model/schedule"
)

// ReadCalendar reads the JSON of a calendar.
func ReadCalendar(text string) (schedule.Calendar, error) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return schedule.Calendar{}, fmt.Errorf("read stored calendar: %w", err)
	}
	return schedule.ParseCalendar(value)
}
