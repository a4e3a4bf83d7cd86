package policy

import (
	"math"
	"testing"
	"time"
)

func TestAPaceHoldsHoweverOftenItIsAsked(t *testing.T) {
	began := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	for text, step := range map[string]time.Duration{"50/s": 70 * time.Millisecond, "3/s": 10 * time.Millisecond, "7000/s": time.Second, "1/m": time.Second, "2/1h": 5 * time.Minute} {
		rate, err := ParseRate(text)
		if err != nil {
			t.Fatal(err)
		}
		next, started := began, 0
		for now := began; now.Before(began.Add(1000 * step)); now = now.Add(step) {
			n := rate.Allow(next, now, 2*time.Second)
			next = rate.Spend(next, now, 2*time.Second, n)
			started += n
			if most := 1 + int(now.Sub(began)/rate.Interval()); started > most {
				t.Fatalf("%s: %d within %v, want at most %d", text, started, now.Sub(began), most)
			}
		}
		if least := int(999*step/rate.Interval()) * 9 / 10; started < least {
			t.Errorf("%s: %d in all, want at least %d", text, started, least)
		}
		if n, most := rate.Allow(began, began.Add(24*time.Hour), 2*time.Second), 1+int(2*time.Second/rate.Interval()); n != most {
			t.Errorf("%s: %d at once after a day, want %d", text, n, most)
		}
		if n := rate.Allow(began.Add(time.Millisecond), began, time.Second); n != 0 {
			t.Errorf("%s: %d before the time", text, n)
		}
		if share := rate.Share(4); share.Interval() < 4*rate.Interval() {
			t.Errorf("%s: the share of four is %v", text, share)
		}
	}
	if n := (Rate{}).Allow(began, began, 0); n != math.MaxInt || !(Rate{}).Spend(began, began, 0, 7).IsZero() {
		t.Errorf("without a rate: %d", n)
	}
	if share := (Rate{Count: 100, Per: 24 * time.Hour}).Share(8); share != (Rate{12, 24 * time.Hour}) {
		t.Errorf("the share of eight is %v", share)
	}
}
