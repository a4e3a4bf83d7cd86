package english

import (
	"fmt"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Error is the refusal of one line of a text. It unwraps to a *document.Error.
type Error struct {
	Line       int // 1 is the first; 0: the text as a whole
	FieldError *document.Error
	Nearest    string // for a sentence that is not known: the most similar one that is
}

func (e *Error) Error() string {
	text := e.FieldError.Error()
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	if e.Nearest != "" {
		text += "; nearest: " + e.Nearest
	}
	return text
}

// Unwrap returns the *document.Error.
func (e *Error) Unwrap() error { return e.FieldError }

// Source knows which line of a text said which field of its policy.
type Source struct {
	lines map[string]int
	mails bool
}

// SaysMail reports whether a sentence says that somebody gets e-mail.
func (s *Source) SaysMail() bool { return s.mails }

// Line returns the line (1 is the first) that said a field such as "timeout", "retries[2]" or "delays_by_error.Gone". A
// field that no sentence names belongs to the line of the nearest field around it; 0 when there is none.
func (s *Source) Line(field string) int {
	for field != "" {
		if line, found := s.lines[field]; found {
			return line
		}
		// "rrule line 2" and "rrule BYHOUR" are places inside rrule.
		field = field[:max(0, strings.LastIndexAny(field, ".[ "))]
	}
	return 0
}
