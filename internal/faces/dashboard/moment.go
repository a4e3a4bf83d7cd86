package dashboard

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// moment is an instant as a page shows it: how far away it is, coarsely, so that an open page is not sent again each second. See the template moment.
type moment struct {
	At   string // RFC 3339; "": there is none
	Text string
}

// clock is an instant on the clock of a zone, which the page names; "": there is none.
func clock(at time.Time, zone *time.Location) string {
	if at.IsZero() {
		return ""
	}
	return at.In(zone).Format(time.DateTime)
}

func newMoment(at, now time.Time) moment {
	away := at.Sub(now)
	length, _, _ := strings.Cut(words.Roughly(away.Abs()), " ")
	switch {
	case at.IsZero():
		return moment{}
	case away.Abs() < time.Minute && away <= 0:
		length = "just now"
	case away.Abs() < time.Minute:
		length = "in a moment"
	case away < 0:
		length += " ago"
	default:
		length = "in " + length
	}
	return moment{model.FormatTime(at), length}
}
