package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
)

// The cost of one model with an hourly rule in a forecast of a day, and in a plan.
func BenchmarkModel(b *testing.B) {
	m := put(b, "m1", seven, hourlyRule)
	b.Run("forecast", func(b *testing.B) {
		walker, counts := NewWalker(seven, seven.Add(24*time.Hour), model.Blockers{}), NewCounts(seven, seven.Add(24*time.Hour))
		b.ReportAllocs()
		for b.Loop() {
			walker.Starts(m, time.Minute, counts.Add)
		}
	})
	b.Run("spread", func(b *testing.B) {
		walker, counts := NewWalker(seven, seven.Add(24*time.Hour), model.Blockers{}), NewCounts(seven, seven.Add(24*time.Hour))
		b.ReportAllocs()
		for b.Loop() {
			walker.Starts(walker.Spread(m, 0), time.Minute, counts.Add)
		}
	})
	b.Run("level", func(b *testing.B) {
		l, n := NewLeveller(seven, seven.Add(24*time.Hour), 10*time.Minute), 0
		b.ReportAllocs()
		for b.Loop() {
			n++
			m.UID = fmt.Sprint("m", n)
			l.Add(m, true, "h")
		}
		b.ReportMetric(float64(l.Plan().Moved), "moved")
	})
}
