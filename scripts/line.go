package scripts

import (
	"context"
	"fmt"
	"time"
)

// InLine is where an attempt stands in the input list.
type InLine struct {
	No   int     // 1 is the first; 0: it does not stand there
	Rate float64 // how many attempts a second have left the list of late; 0: not known
}

// Wait is how long it takes at the present rate until the attempt is taken; 0: not known.
func (p InLine) Wait() time.Duration {
	if p.No == 0 || p.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(p.No) / p.Rate * float64(time.Second))
}

// PlaceInLine looks for an attempt in the input list. It reads all of it, so it is for people, not for loops.
func (s *Store) PlaceInLine(ctx context.Context, attemptUID string) (InLine, error) {
	entries, err := s.clients.Read.LRange(ctx, s.Keys.Input(), 0, -1).Result()
	if err != nil {
		return InLine{}, fmt.Errorf("read the input list: %w", err)
	}
	fronts, err := s.Fronts(ctx)
	place := InLine{Rate: fronts.Rate()}
	for i, raw := range entries {
		if entry, _ := s.Wire().ParseEntry(raw); entry.AttemptUID == attemptUID {
			place.No = i + 1
		}
	}
	return place, err
}
