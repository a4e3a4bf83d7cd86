package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
)

// brakeOf reads the mass-failure brake.
func brakeOf(hash map[string]string) model.Brake {
	on := hash["on"] == "1"
	share, _ := strconv.ParseFloat(hash["share"], 64)
	window := time.Duration(count(hash["window_ms"])) * time.Millisecond
	return model.Brake{On: on, Engaged: on && hash["engaged_at"] != "", Share: share, Window: window, Min: count(hash["min"])}
}

// end is one attempt that the brake counts: when the tenth of its window began, and how it ended.
type end struct {
	tenth  int64 // Unix ms
	failed bool
}

// tenthOf is when the tenth of a window began that an instant belongs to, in Unix ms.
func tenthOf(at time.Time, window time.Duration) int64 {
	return at.UnixMilli() - at.UnixMilli()%(window.Milliseconds()/10)
}

// count notes an end that the brake has to count.
func (p *replay) count(event model.Event, at time.Time) {
	counts := event == model.EventSuccess || event == model.EventFailure || event == model.EventTimeout
	if p.brake.On && counts {
		p.ends = append(p.ends, end{tenthOf(at, p.brake.Window), event != model.EventSuccess})
	}
}

// checkBrake checks what a measurement of the brake has led to.
func (p *replay) checkBrake() error {
	was, is := p.before.brake["engaged_at"], p.after.brake["engaged_at"]
	told := slices.DeleteFunc(slices.Clone(p.after.journal), func(entry map[string]string) bool { return !aboutBrake(entry) })
	if p.measured.IsZero() || p.before.brake["on"] != "1" {
		if was != is || len(told) > 0 {
			return fmt.Errorf("the brake has changed from %q to %q, and nobody measured it: %v", was, is, told)
		}
		return nil
	}
	brake := brakeOf(p.before.brake)
	p.ends = slices.DeleteFunc(p.ends, func(e end) bool { // one from far ahead is from before the clock was set back
		return time.UnixMilli(e.tenth).Sub(p.measured).Abs() >= brake.Window
	})
	total, failed := len(p.ends), 0
	for _, e := range p.ends {
		if e.failed {
			failed++
		}
	}
	at := model.FormatTime(p.measured)
	entry := map[string]string{"event": "", "at": at, "successes": strconv.Itoa(total - failed), "failures": strconv.Itoa(failed)}
	want := was
	switch share := float64(failed); {
	case was == "" && total >= brake.Min && share >= brake.Share*float64(total):
		entry["event"], want = "brake_engaged", at
	case was != "" && total > 0 && share < brake.Share*float64(total)/2:
		entry["event"], want = "brake_released", ""
	}
	if is != want || len(told) > 1 || fmt.Sprint(told) != fmt.Sprint([]map[string]string{entry}) && entry["event"] != "" {
		return fmt.Errorf("the brake is engaged since %q, want %q by %v, told was %v", is, want, entry, told)
	}
	return nil
}

func aboutBrake(entry map[string]string) bool {
	return entry["event"] == "brake_engaged" || entry["event"] == "brake_released"
}
