package schedule

import (
	"regexp"

	"github.com/refreshd/refreshd/model/document"
)

// calendarName keeps "calendar:" with a name below 64 bytes, so that the hash of a model that waits for it stays small.
var calendarName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$`)

// CheckCalendarName accepts in a field the name of a calendar: 1-50 letters, digits and _.- , beginning with a letter or digit.
func CheckCalendarName(field, name string) error {
	if calendarName.MatchString(name) {
		return nil
	}
	return document.Refuse(field, "the name of a calendar: 1-50 letters, digits or _.- (first a letter or digit)", document.Found(name))
}
