package words

import (
	"cmp"
	"fmt"
	"time"
)

// Distance tells a person how far an instant is from now.
func Distance(at, now time.Time) string {
	away := at.Sub(now)
	switch {
	case away.Abs() < time.Second:
		return "now"
	case away < 0:
		return Roughly(-away) + " ago"
	default:
		return "in " + Roughly(away)
	}
}

// Roughly renders a length of time by its two largest units.
func Roughly(length time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	text := ""
	for _, unit := range units {
		count := length / unit.size
		length %= unit.size
		switch {
		case text != "" && count > 0:
			return fmt.Sprintf("%s %d%s", text, count, unit.name)
		case text != "":
			return text
		case count > 0:
			text = fmt.Sprintf("%d%s", count, unit.name)
		}
	}
	return cmp.Or(text, "0s")
}
