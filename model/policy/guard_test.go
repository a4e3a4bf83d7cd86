package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAGuardIsReadAndReadBack(t *testing.T) {
	for text, want := range map[string][]Guard{
		`[{"rows":{"min":1}},{"rows":{"drop":"50%"}}]`: {{"rows", GuardMin, 1, 0}, {"rows", GuardDrop, 50, 10}},
		`[{"rows":{"rise":" 12.5 %","of":3,"max":"1e3","min":0.5,"drop":"1%"},"bytes":{"min":"-0"}}]`: {
			{"bytes", GuardMin, 0, 0}, {"rows", GuardMin, 0.5, 0}, {"rows", GuardMax, 1000, 0}, {"rows", GuardDrop, 1, 3}, {"rows", guardRise, 12.5, 3}},
		`"none"`: nil, `[]`: nil, `null`: nil,
	} {
		got := policyOf(t, `{"guard":`+text+`,"on_suspect":"hold"}`)
		diff := cmp.Diff(want, got.Guard)
		failIf(t, diff != "" || got.OnSuspect != SuspectHold, "%s: %s, -want +got\n%s", text, got.OnSuspect, diff)
		again := policyOf(t, got.canonical())
		failIf(t, !again.Equal(got), "%s is read back as %s", got.canonical(), again.canonical())
	}
}

func TestABadGuardIsRefusedWithTheField(t *testing.T) {
	const percent = `a percentage up to 99%, such as "50%", found `
	nine := `[{"a":{"min":1,"max":2,"drop":"5%","rise":"5%"}},{"b":{"min":1,"max":2,"drop":"5%","rise":"5%"}},{"c":{"min":1}}]`
	refusals(t, map[string]string{
		`{"guard":{"rows":{"min":1}}}`:              `guard: expected a list such as [{rows: {min: 1}}], found an object`,
		`{"guard":[7]}`:                             `guard[0]: expected an object such as {rows: {min: 1}}, found 7`,
		`{"guard":[{}]}`:                            `guard[0]: expected an object such as {rows: {min: 1}}, found an object`,
		`{"guard":[{"Rows":{"min":1}}]}`:            `guard[0]: expected a name of 1-40 small letters, digits or _ (first a letter), found "Rows"`,
		`{"guard":[{"rows":{}}]}`:                   `guard[0].rows: expected min, max, drop or rise, found nothing`,
		`{"guard":[{"rows":{"least":1}}]}`:          `guard[0].rows.least: expected one of min, max, drop, rise, of, found an unknown field`,
		`{"guard":[{"rows":{"min":-1}}]}`:           `guard[0].rows.min: expected a number from 0 to 1e+15, found -1`,
		`{"guard":[{"rows":{"drop":50}}]}`:          `guard[0].rows.drop: expected ` + percent + `50`,
		`{"guard":[{"rows":{"drop":"100%"}}]}`:      `guard[0].rows.drop: expected ` + percent + `"100%"`,
		`{"guard":[{"rows":{"drop":"NaN%"}}]}`:      `guard[0].rows.drop: expected ` + percent + `"NaN%"`,
		`{"guard":[{"rows":{"min":1,"of":5}}]}`:     `guard[0].rows.of: expected drop or rise beside it, found neither`,
		`{"guard":[{"rows":{"drop":"5%","of":2}}]}`: `guard[0].rows.of: expected a whole number from 3 to 100, found 2`,
		`{"guard":` + nine + `}`:                    `guard: expected at most 8 bounds, found 9`,
		`{"on_suspect":"wait"}`:                     `on_suspect: expected tell or fail or hold, found "wait"`,
	})
}

func TestAGuardAllowsItsBoundAndNothingBeyond(t *testing.T) {
	for _, test := range []struct {
		guard          Guard
		usual          float64
		allowed, other float64
		want           string
	}{
		{Guard{"rows", GuardMin, 1, 0}, 0, 1, 0, "rows 0: expected at least 1"},
		{Guard{"rows", GuardMax, 100, 0}, 0, 100, 101, "rows 101: expected at most 100"},
		{Guard{"rows", GuardDrop, 50, 10}, 100, 50, 49.5, "rows 49.5: over 50% less than the usual 100"},
		{Guard{"rows", guardRise, 100, 10}, 100, 200, 201, "rows 201: over 100% more than the usual 100"},
		{Guard{"profit", GuardDrop, 50, 10}, -100, -150, -151, "profit -151: over 50% less than the usual -100"},
		{Guard{"bytes", guardRise, 10, 10}, 0, 0, 1e20, "bytes 1e+20: over 10% more than the usual 0"},
	} {
		failIf(t, !test.guard.Allows(test.allowed, test.usual), "%v doubts %v", test.guard, test.allowed)
		failIf(t, test.guard.Allows(test.other, test.usual), "%v allows %v", test.guard, test.other)
		got := test.guard.Reason(test.other, test.usual)
		failIf(t, got != test.want, "got %s, want %s", got, test.want)
	}
}

func TestAGuardThatCannotDoWhatItSaysIsWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		`{"on_suspect":"hold"}`: "on_suspect: says hold, and there is no guard: nothing is ever doubted",
		`{"guard":[{"rows":{"min":1}},{"rows":{"drop":"5%","of":11}}]}`: "guard[1].rows.of: 11 results are more than the 10 attempts that a history keeps, unless --history-cap says more",
		`{"guard":[{"rows":{"drop":"5%"}}],"on_suspect":"fail"}`:        "",
	} {
		p := policyOf(t, text)
		got := ""
		for _, warning := range (Subject{Policy: &p}).Lint(true, time.Unix(0, 0)) {
			got += warning.String()
		}
		failIf(t, got != want, "%s: got %s, want %s", text, got, want)
	}
}
