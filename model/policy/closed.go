package policy

import (
	"fmt"
	"slices"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// maxClosed is how many calendars a policy may name.
const maxClosed = 8

func (p *Policy) readClosed(doc document.Object) error {
	if saysNone(doc, "closed") {
		return nil
	}
	names, err := doc.Words("closed")
	if err != nil {
		return err
	}
	for i, name := range names {
		if err := schedule.CheckCalendarName(fmt.Sprintf("closed[%d]", i), name); err != nil {
			return err
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxClosed {
		return document.Refuse("closed", fmt.Sprintf("at most %d calendars", maxClosed), fmt.Sprint(len(names)))
	}
	if len(names) > 0 {
		p.Closed = names
	}
	return nil
}
