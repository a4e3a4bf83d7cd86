package model

import (
	"strings"
	"testing"
)

func TestADeedNamesWhatDiffersOfTwoTexts(t *testing.T) {
	for _, test := range []struct{ before, after, was, is string }{
		{"", `{"running":3,"since":"x","by":"ann"}`, "", "running 3"},
		{`{"running":3,"since":"x"}`, `{"running":5,"since":"y","reason":"why"}`, "running 3", "running 5"},
		{`{"name":"p","timeout":"1m","retries":["1m"]}`, `{"name":"p","timeout":"2m","retries":["1m"]}`, "timeout 1m", "timeout 2m"},
		{`{"until":"x"}`, "", "until x", ""},
		{`{"circuit":{"key":"{host}","probe":"30s"},"retries":["1m"]}`, `{"circuit":{"key":"{host}","probe":"1m"},"retries":["2m"]}`, `circuit probe 30s retries ["1m"]`, `circuit probe 1m retries ["2m"]`},
		{"quiet ann", "", "quiet ann", ""},
		{"0.5", "0.7", "0.5", "0.7"},
		{"{", `{"a":1}`, "{", `{"a":1}`},
		{`{"zone":""}`, `{"zone":"x"}`, "", "zone x"},
	} {
		if was, is := Differing(test.before, test.after); was != test.was || is != test.is {
			t.Errorf("%s and %s: got %q and %q, want %q and %q", test.before, test.after, was, is, test.was, test.is)
		}
	}
}

func TestTheTextsOfADeedAreShortAndOfOneLine(t *testing.T) {
	long := strings.Repeat("x\x1b\n", 100)
	d := Deed{What: long, By: long, From: long, Reason: long, Before: long, After: long}.Shortened()
	for _, text := range []string{d.What, d.By, d.From, d.Reason, d.Before, d.After} {
		if len(text) > MaxDeedText || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("got %q, want one line of at most %d bytes", text, MaxDeedText)
		}
	}
}

func TestEntriesOfOneDeedAreTakenTogether(t *testing.T) {
	begin := Deed{ID: "1", Verb: "model run", What: "t=1", By: "ann", From: "command line", Begins: 1}
	end := Deed{ID: "1", Verb: "model run", What: "t=1", By: "ann", From: "poller", Number: 7, Ends: 1}
	one := end.With(&begin)
	if one.From != "command line" || one.Number != 7 || one.GoesOn() {
		t.Errorf("got %+v, want the begin with seven models, and over", one)
	}
	if both := (Deed{Number: 3}).With(&Deed{Number: 4, What: "a b"}); both.Number != 7 || both.What != "a b" {
		t.Errorf("got %+v, want seven models of two parts", both)
	}
}
