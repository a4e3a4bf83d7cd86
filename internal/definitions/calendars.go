package definitions

import (
	"io"

	"github.com/refreshd/refreshd/model/schedule"
)

// ReadCalendars reads the calendars of a file: in JSON, or in YAML with many documents. An error names its position.
func ReadCalendars(name string, in io.Reader) ([]schedule.Calendar, error) {
	text, err := readAll(name, in, maxDocument)
	if err != nil {
		return nil, err
	}
	docs, err := readDocuments(name, text, rooted(""))
	if err != nil {
		return nil, err
	}
	calendars := make([]schedule.Calendar, 0, len(docs))
	for _, doc := range docs {
		if doc.Err != nil {
			return nil, doc.At(doc.Err)
		}
		calendar, err := schedule.ParseCalendar(doc.Value)
		if err != nil {
			return nil, doc.At(err)
		}
		calendars = append(calendars, calendar)
	}
	return calendars, nil
}
