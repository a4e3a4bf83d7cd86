package remedy

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// ofCommandLine is what only the command line may say: a flag, or a command to type.
var ofCommandLine = regexp.MustCompile(`--[a-z]|refreshd [a-z]`)

func TestEachFaceSaysARemedyInItsOwnWords(t *testing.T) {
	for r := range Remedies {
		for face := range Faces {
			text := Say(r, face, "tbl_1")
			if text != "" && ofCommandLine.MatchString(text) != (face == CommandLine) {
				t.Errorf("remedy %d, face %d: found %q in the words of another face", r, face, text)
			}
			if strings.Contains(text, "<") {
				t.Errorf("remedy %d, face %d: found a placeholder in %q", r, face, text)
			}
			for sentence := range strings.SplitSeq(text, ". ") {
				if words := len(strings.Fields(sentence)); words > 15 {
					t.Errorf("remedy %d, face %d: expected at most 15 words, found %d in %q", r, face, words, sentence)
				}
			}
		}
		if Say(r, CommandLine, "tbl_1") == "" {
			t.Errorf("remedy %d: expected one on the command line, which can do everything", r)
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
