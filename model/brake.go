package model

import (
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Brake is the mass-failure brake of a queue: when more than a share of attempts fail within a window, the outage is taken to be
// on our side, and nobody is disabled for it.
type Brake struct {
	On      bool
	Engaged bool          // too many attempts fail: final failures are held back
	Share   float64       // of failed attempts that engages it, 0 to 1
	Window  time.Duration // over which attempts are counted
	Min     int           // attempts within the window below which nothing is concluded
}

// DefaultBrake is what a brake is tuned to until somebody tunes it. It is off.
func DefaultBrake() Brake {
	return Brake{Share: 0.5, Window: 5 * time.Minute, Min: 20}
}

// Validate reports the first field out of range.
func (b Brake) Validate() error {
	switch {
	case !(b.Share >= 0.05 && b.Share <= 1):
		return document.Refuse("share", "5% to 100%", document.Found(b.Share))
	case b.Window < 10*time.Second || b.Window > 24*time.Hour:
		return document.Refuse("window", "10s to 1d", document.FormatDuration(b.Window))
	case b.Min < 1 || b.Min > 1_000_000:
		return document.Refuse("min", "1 to 1000000 attempts", document.Found(b.Min))
	default:
		return nil
	}
}

// brakeDelay is the least delay of a retry while the brake is engaged, and that of a final failure held back.
const brakeDelay = 5 * time.Minute

// brakeSpread is the jitter of a held failure: what failed together must not come back together.
const brakeSpread = 0.5
