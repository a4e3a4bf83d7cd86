package words

import (
	"slices"
	"testing"
)

func TestAPatternIsTriedOnWhatItCanMatch(t *testing.T) {
	for expr, want := range map[string][]string{
		`\bat (\d+) o'?clock\b`: {"clock"}, `^(?:every|each) single\b`: {" single"}, `everyday|daily`: {"everyday", "daily"}, `(?i)\bRetry\b`: {"retry"},
		`(\d)x`: {"x"}, `every(?: an)? hour`: {"every"}, `\d+|daily`: nil, `(daily)?`: nil, `[ab]+`: nil, `(?:per|a) (?:day|week)`: {"day", "week"},
	} {
		if got := CompilePattern(expr).needles; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
	var hourly Respellings
	hourly.Add(`(?i)every hour`, "hourly")
	for text, want := range map[string]string{"Refresh EVERY HOUR": "Refresh hourly", "every day": "every day", "": ""} {
		if got := hourly.Apply(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
