package definitions

import (
	"bufio"
	"fmt"
	"io"

	"github.com/refreshd/refreshd/model/schedule"
)

// ReadCalendars reads the calendars of a file: in JSON, or in YAML with many documents. An error names its position.
func ReadCalendars(name string, in io.Reader) ([]schedule.Calendar, error) {
	buffered := bufio.NewReader(in)
	skipMark(buffered)
	text, err := io.ReadAll(io.LimitReader(buffered, maxPolicies+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxPolicies {
		return nil, fmt.Errorf("%s: expected at most %d MiB", name, maxPolicies>>20)
	}
	docs, err := readYAML(name, text, rooted("")) // YAML reads JSON too
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
