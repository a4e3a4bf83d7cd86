package main

import (
	"os"
	"testing"
)

// TestThePictureOfTheREADMEIsWhatItsCommandPrints runs the command that README.md shows above docs/twice-daily.svg.
func TestThePictureOfTheREADMEIsWhatItsCommandPrints(t *testing.T) {
	want, err := os.ReadFile("../../docs/twice-daily.svg")
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t}
	got := c.do("simulate", "--policy", "../../examples/policies/twice-daily.txt", "--outcomes", "../../examples/policies/bad-afternoon.txt",
		"--start", "2026-01-05T14:05:00+01:00", "-o", "svg")
	if got != string(want) {
		t.Error("docs/twice-daily.svg is not what the command prints: print it anew, and look at it")
	}
}
