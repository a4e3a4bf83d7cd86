package definitions

import (
	"io"

	"github.com/refreshd/refreshd/model/schedule"
)

// ReadCalendars reads the calendars of a file: in JSON, or in YAML with many documents. An error names its position.
func ReadCalendars(name string, in io.Reader) ([]schedule.Calendar, error) {
	docs, err := readAllGood(name, in)
	if err != nil {
		return nil, err
	}
	calendars := make([]schedule.Calendar, 0, len(docs))
	for _, doc := range docs {
		calendar, err := schedule.ParseCalendar(doc.Value)
		if err != nil {
			return nil, doc.At(err)
		}
		calendars = append(calendars, calendar)
	}
	return calendars, nil
}
