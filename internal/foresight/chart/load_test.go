package chart

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestALoadLooksAsItDidBefore(t *testing.T) {
	perMinute := make([]int, 24*60)
	other := make([]int, len(perMinute))
	for hour := range 24 {
		perMinute[hour*60] = 900
		for minute := range 6 {
			other[hour*60+minute] = 150
		}
	}
	perMinute[9*60] = 2400
	var got bytes.Buffer
	load := Load{Title: "bigtables <next 24 hours>", Digest: "24,000 starts, at most 2,400 a minute", From: time.Date(2026, 1, 5, 7, 0, 0, 0, time.UTC),
		PerMinute: perMinute, Other: other, OtherName: "with a spread of 6m", Drain: 600}
	must(t, LoadSVG(&got, load))
	checkSVG(t, got.String())
	compare(t, filepath.Join("testdata", "load.svg"), got.Bytes())
}

func TestWhateverTheLoadItCanBeShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(0, 1<<40), 0, 3000)
		load := Load{
			Title: anyText.Draw(t, "title"), Digest: anyText.Draw(t, "digest"), From: anyTime.Draw(t, "from"), PerMinute: counts.Draw(t, "starts"),
			Other: counts.Draw(t, "other"), OtherName: anyText.Draw(t, "name"), Drain: rapid.Float64Range(0, 1e9).Draw(t, "drain"),
		}
		var text strings.Builder
		if err := LoadSVG(&text, load); err != nil {
			t.Fatal(err)
		}
		checkSVG(t, text.String())
	})
}
