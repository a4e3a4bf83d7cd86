package hint

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// ofCommandLine is what only the command line may texts: a flag, or a command to type.
var ofCommandLine = regexp.MustCompile(`--[a-z]|refreshd [a-z]`)

func TestEachFaceSaysARemedyInItsOwnWords(t *testing.T) {
	for r := range Hints {
		for ui := range UIs {
			text := Text(r, ui, "tbl_1")
			if text != "" && ofCommandLine.MatchString(text) != (ui == CommandLine) {
				t.Errorf("hint %d, ui %d: found %q in the words of another ui", r, ui, text)
			}
			if strings.Contains(text, "<") {
				t.Errorf("hint %d, ui %d: found a placeholder in %q", r, ui, text)
			}
			for sentence := range strings.SplitSeq(text, ". ") {
				if words := len(strings.Fields(sentence)); words > 15 {
					t.Errorf("hint %d, ui %d: expected at most 15 words, found %d in %q", r, ui, words, sentence)
				}
			}
		}
		if Text(r, CommandLine, "tbl_1") == "" {
			t.Errorf("hint %d: expected one on the command line, which can do everything", r)
		}
	}
}

func TestARefusedRunKeepsTheFieldsOfItsReply(t *testing.T) {
	m := &model.Model{UID: "tbl_1"}
	m.DisabledReason = "not paid"
	for outcome, want := range map[model.Outcome][2]string{
		model.Busy:    {`an attempt is queued or running. To replace it, send "force": true.`, "run: expected an idle model, found an attempt queued or running"},
		model.Stopped: {`the model was disabled by hand ("not paid"). To enable and run it, send "force": true.`, "run: expected a model that was not disabled by hand, found one"},
	} {
		err := In(RunRefused(outcome, m), Message)
		refused, is := errors.AsType[*document.Error](err)
		if !is || err.Error() != want[0] || refused.Error() != want[1] {
			t.Errorf("%s: want %q, got %q and %v", outcome, want, err, refused)
		}
	}
}
