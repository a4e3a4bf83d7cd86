package policy

import (
	"testing"
	"time"
)

func TestARetryAndThePlannedRefreshAreComparedWithTheTimeout(t *testing.T) {
	planned := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	const timeout = 10 * time.Minute
	for name, test := range map[string]struct {
		retry   time.Duration // after planned
		timeout time.Duration
		want    Overlap
	}{
		"long before":          {-timeout - 1, timeout, Before},
		"ends with its start":  {-timeout, timeout, Before},
		"ends after its start": {-timeout + 1, timeout, OverlapsStart},
		"just before":          {-1, timeout, OverlapsStart},
		"with it":              {0, timeout, Same},
		"just behind":          {1, timeout, OverlapsEnd},
		"before its end":       {timeout - 1, timeout, OverlapsEnd},
		"at its end":           {timeout, timeout, After},
		"long behind":          {timeout + 1, timeout, After},
		"before, no timeout":   {-1, 0, Before},
		"with it, no timeout":  {0, 0, Same},
		"behind, no timeout":   {1, 0, After},
	} {
		got := OverlapOf(planned.Add(test.retry), planned, test.timeout)
		failIf(t, got != test.want, "%s: got %q, want %q", name, got, test.want)
	}
	got := OverlapOf(planned, time.Time{}, timeout)
	failIf(t, got != NonePlanned, "nothing is planned: got %q", got)
}

func TestEachAlignmentPrefersThePlannedRefreshInItsOwnCases(t *testing.T) {
	overlaps := []Overlap{NonePlanned, Before, OverlapsStart, Same, OverlapsEnd, After}
	for alignment, want := range map[Alignment][]bool{
		UntilSuccess:   {false, false, false, false, false, false},
		PlannedOnly:    {false, true, true, true, true, true},
		WhicheverFirst: {false, false, false, true, true, true},
		AlignPlanned:   {false, false, true, true, true, true},
	} {
		for i, overlap := range overlaps {
			got := alignment.PrefersPlanned(overlap)
			failIf(t, got != want[i], "%s, %s: got %t", alignment, overlap, got)
		}
	}
}

func TestAnAlignmentIsCalledByItsNameOrByItsKind(t *testing.T) {
	p := Policy{Alignment: UntilSuccess}
	failIf(t, p.AlignmentName() != string(UntilSuccess), "got %q", p.AlignmentName())
	p.AlignBy = aligned(t, "retry_at")
	failIf(t, p.AlignmentName() != "aligned by expression", "got %q", p.AlignmentName())
}

func TestADelayMovesByUpToItsShareToBothSides(t *testing.T) {
	const delay = time.Hour
	least, most := delay, delay
	for i := range 200 {
		got := Vary(delay, 0.25, string(rune('a'+i)))
		failIf(t, got%time.Millisecond != 0, "got %s", got)
		least, most = min(least, got), max(most, got)
	}
	failIf(t, least < 45*time.Minute || least > 47*time.Minute || most > 75*time.Minute || most < 73*time.Minute, "from %s to %s", least, most)
	for _, test := range []struct {
		delay time.Duration
		share float64
	}{{0, 0.5}, {-1, 0.5}, {time.Nanosecond, 0}} {
		got := Vary(test.delay, test.share, "a")
		failIf(t, got != test.delay, "%s by %v: got %s", test.delay, test.share, got)
	}
}

// The bound of a cache counts by it.
func TestTheSizeOfACompiledPolicyIsThatOfAllItsExpressions(t *testing.T) {
	const formula = "60"
	p := Policy{}
	failIf(t, p.CompiledSize() != 0, "without an expression: %d", p.CompiledSize())
	p.Retries = inExpression(t, formula)
	failIf(t, p.CompiledSize() != 160*len(formula), "got %d", p.CompiledSize())
	p.AlignBy = aligned(t, "retry_at")
	failIf(t, p.CompiledSize() != 160*(len(formula)+len("retry_at")), "with an alignment: %d", p.CompiledSize())
	by, plain := p.AlignBy.patterns, p.CompiledSize()
	p.Retries.(*Expression).patterns, p.AlignBy.patterns = 3, by+4
	failIf(t, p.CompiledSize() != plain+48*7, "with patterns: %d", p.CompiledSize()-plain)
}

func TestAFieldIsKnownUnderEachOfItsNames(t *testing.T) {
	for _, name := range fieldNames {
		failIf(t, !HasField(name), "%s is not known", name)
	}
	for name := range fieldAliases {
		failIf(t, !HasField(name), "%s is not known", name)
	}
	for _, a := range aliases {
		failIf(t, !HasField(a.alias), "%s is not known", a.alias)
	}
	failIf(t, HasField("") || HasField("retrys"), "any name is known")
}

func TestAResultIsWithheldOnlyByAGuardWhosePolicySaysMoreThanTell(t *testing.T) {
	guarded := []Guard{{}}
	for _, test := range []struct {
		policy Policy
		want   bool
	}{{Policy{}, false}, {Policy{Guard: guarded}, false}, {Policy{OnSuspect: SuspectHold}, false}, {Policy{Guard: guarded, OnSuspect: SuspectFail}, true}} {
		failIf(t, test.policy.Withholds() != test.want, "%d guards, %q: %t", len(test.policy.Guard), test.policy.OnSuspect, !test.want)
	}
}

func TestADraftIsRenamedAndStaysItself(t *testing.T) {
	draft, err := Read(jsonOf(t, `{"name":"slow","timeout":"1h"}`))
	must(t, err)
	renamed := draft.Rename("fast")
	failIf(t, draft.Name() != "slow" || renamed.Name() != "fast", "got %q and %q", draft.Name(), renamed.Name())
	p, name, text, err := draft.Rename("").CompleteInline(Default())
	must(t, err)
	failIf(t, p.Timeout != time.Hour || name != contentName(text) || text != p.canonical(), "got %s %s", name, text)
	pair, err := Read(jsonOf(t, `{"timeout":"1m","silent_after":"1m"}`))
	must(t, err)
	_, _, _, err = pair.CompleteInline(Default())
	failIf(t, refusedField(err) != "silent_after", "two fields that contradict each other: %v", err)
}
