package dispatcher

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// measureEvery is how often a dispatcher measures the brake.
const measureEvery = time.Second

// measureBrake measures the mass-failure brake once a second, before anything is decided.
func (d *Dispatcher) measureBrake(ctx context.Context, now time.Time) error {
	if since := now.Sub(d.measured); since >= 0 && since < measureEvery {
		return nil
	}
	change, err := d.store.MeasureBrake(ctx, now)
	if err != nil {
		return err
	}
	d.measured = now
	switch change {
	case scripts.BrakeEngaged:
		d.config.Log.Error().Msg("dispatcher: the brake is engaged: too many attempts fail, final failures are held back")
	case scripts.BrakeReleased:
		d.config.Log.Info().Msg("dispatcher: the brake is released: attempts succeed again")
	}
	return nil
}
