package policy

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/expr-lang/expr"

	"github.com/refreshd/refreshd/model/document"
)

// Alignment is how a retry is joined with the schedule.
type Alignment string

// The alignments. Without a planned refresh the retry runs after its delay, whatever the alignment.
const (
	// AlignPlanned lets a retry run only when it ends before the planned refresh begins.
	AlignPlanned Alignment = "align_planned"
	// UntilSuccess lets every retry run; planned refreshes that pass meanwhile are skipped.
	UntilSuccess Alignment = "until_success"
	// PlannedOnly lets no retry run: the planned refresh is the retry.
	PlannedOnly Alignment = "planned_only"
	// WhicheverFirst takes the first to start.
	WhicheverFirst Alignment = "whichever_first"
	// BetweenPlanned is AlignPlanned, but a planned refresh begins a new cycle of attempts.
	BetweenPlanned Alignment = "between_planned"
)

// Overlap compares the time of a retry with the planned refresh.
type Overlap string

// The overlaps of a retry [start, start+timeout) with a planned refresh of the same length.
const (
	NonePlanned   Overlap = "none planned"
	Before        Overlap = "before"         // ends before planned begins, or exactly then
	OverlapsStart Overlap = "overlaps start" // starts before planned and would end after its beginning
	Same          Overlap = "same"           // starts exactly with planned
	OverlapsEnd   Overlap = "overlaps end"   // starts while planned would run
	After         Overlap = "after"          // starts when planned would have ended
)

// OverlapOf compares a retry with the planned refresh; a zero time: there is none. A timeout of zero is an unknown length: only the starts count.
func OverlapOf(retryAt, planned time.Time, timeout time.Duration) Overlap {
	switch {
	case planned.IsZero():
		return NonePlanned
	case retryAt.Equal(planned):
		return Same
	case retryAt.Before(planned) && retryAt.Add(timeout).After(planned):
		return OverlapsStart
	case retryAt.Before(planned):
		return Before
	case retryAt.Before(planned.Add(timeout)):
		return OverlapsEnd
	default:
		return After
	}
}

// PrefersPlanned reports whether the planned refresh takes the place of a retry.
func (a Alignment) PrefersPlanned(overlap Overlap) bool {
	switch {
	case overlap == NonePlanned || a == UntilSuccess:
		return false
	case a == PlannedOnly:
		return true
	case a == WhicheverFirst:
		return overlap != Before && overlap != OverlapsStart
	default:
		return overlap != Before
	}
}

// Aligner is an alignment as a formula over an AlignInput: retry_at, planned_at and now are times; timeout is a length (0: none), as are 5m or
// 1h30m outside of quotes. It returns the time of the next attempt. It has no loops, no clock and no side effects.
type Aligner struct{ formula }

// AlignInput is a failure whose retry is to be aligned with the schedule.
type AlignInput struct {
	RetryAt   time.Time     `expr:"retry_at"`   // when the retry alone would start
	PlannedAt time.Time     `expr:"planned_at"` // the next planned refresh
	Now       time.Time     `expr:"now"`
	Timeout   time.Duration `expr:"timeout"`
	K         int           `expr:"k"` // failures in this cycle, 1 is the first
	ErrorType string        `expr:"error_type"`
	Reason    string        `expr:"reason"`
}

// At returns when the next attempt starts: in whole milliseconds, not before now and within ten years. Its error is a policy_error.
func (a *Aligner) At(j AlignInput) (time.Time, error) {
	j.RetryAt, j.PlannedAt, j.Now = j.RetryAt.UTC(), j.PlannedAt.UTC(), j.Now.UTC()
	result, err := expr.Run(a.program, j)
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return time.Time{}, errors.New(reason)
	}
	at, ok := result.(time.Time)
	switch {
	case !ok:
		return time.Time{}, fmt.Errorf("expected a time such as retry_at or planned_at, found %T", result)
	case at.Before(j.Now) || at.After(j.Now.Add(document.MaxDuration)):
		return time.Time{}, fmt.Errorf("expected a time from now to ten years on, found %s", at.UTC().Format(time.RFC3339))
	default:
		return at.Truncate(time.Millisecond), nil
	}
}

func parseAligner(fields map[string]any) (*Aligner, error) {
	text, err := readExpression(fields)
	if err != nil {
		return nil, err
	}
	// Lengths of time, such as 5m or 1w, get a form that the language of expressions knows.
	meant := expressionWord.ReplaceAllStringFunc(text, func(word string) string {
		length, err := document.ParseDuration(word)
		if err != nil || !lengthLiteral.MatchString(word) {
			return word // which the compiler may refuse
		}
		return fmt.Sprintf(`duration("%dms")`, length.Milliseconds())
	})
	compiled, err := compile(text, meant, "retry_at, planned_at, now, timeout, k, error_type and reason, which returns a time",
		expr.Env(AlignInput{}), expr.AsKind(reflect.Struct), expr.EnableBuiltin("duration"))
	return &Aligner{compiled}, err
}

var (
	// expressionWord matches texts, comments, names, and numbers with their units.
	expressionWord = regexp.MustCompile("(?s)\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`|//[^\\n]*|/\\*.*?\\*/|[A-Za-z_$][\\w$]*|\\d[\\w.]*")
	lengthLiteral  = regexp.MustCompile(`^(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+$`)
)

// AlignmentName is how retries are joined with the schedule, in a word or two.
func (p *Policy) AlignmentName() string {
	if p.AlignBy != nil {
		return "aligned by expression"
	}
	return string(p.Alignment)
}
