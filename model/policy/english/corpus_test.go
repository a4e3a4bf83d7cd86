package english

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

// entry is a text with the policy that it means.
type entry struct {
	line    int
	text    string
	meaning map[string]any // nil: it must be refused
}

// corpus reads the policies that were written by hand.
func corpus(t *testing.T) (all []entry) {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	var read entry
	for i, line := range strings.Split(string(text), "\n") {
		meaning, ends := strings.CutPrefix(line, "= ")
		switch {
		case ends:
			if meaning != "refused" {
				if err := json.Unmarshal([]byte(meaning), &read.meaning); err != nil {
					t.Fatalf("testdata/corpus.txt line %d: %v", i+1, err)
				}
			}
			all, read = append(all, read), entry{}
		case strings.HasPrefix(line, "#") || line == "" && read.text == "":
		default:
			if read.text == "" {
				read.line = i + 1
			}
			read.text += line + "\n"
		}
	}
	return all
}

// meaningOf is what a document makes of a policy, to the letter; empty: it is refused.
func meaningOf(t reporter, doc map[string]any) string {
	t.Helper()
	draft, err := policy.Read(doc)
	if err != nil {
		return ""
	}
	whole, err := draft.Complete(ofTheHouse)
	if err != nil {
		return ""
	}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatalf("%v: %v", doc, err)
	}
	return string(text)
}

// readMeaning is what a text makes of a policy; empty: it is refused.
func readMeaning(t reporter, text string) (string, error) {
	t.Helper()
	doc, _, err := Parse(text)
	if err != nil {
		return "", err
	}
	if meaning := meaningOf(t, doc); meaning != "" {
		return meaning, nil
	}
	return "", errors.New("refused by the model")
}

func TestNoPolicyWrittenByHandIsMisreadAndThreeOfFourAreRead(t *testing.T) {
	meant, read, misread := 0, 0, 0
	entries := corpus(t)
	for _, e := range entries {
		want := ""
		if e.meaning != nil {
			meant++
			if want = meaningOf(t, e.meaning); want == "" {
				t.Errorf("line %d: the model refuses the meaning of %s", e.line, e.text)
			}
		}
		got, err := readMeaning(t, e.text)
		switch {
		case got == "" && want != "":
			t.Logf("line %d is refused: %v", e.line, err)
		case got == want && want != "":
			read++
		case got != want:
			misread++
			doc, _, _ := Parse(e.text)
			t.Errorf("line %d is misread: %s got %v\nwant %v", e.line, e.text, doc, e.meaning)
		}
	}
	t.Logf("of %d written by hand %d have a meaning; %d of them are read; %d are misread", len(entries), meant, read, misread)
	if read*4 < meant*3 {
		t.Errorf("expected three of four policies that everybody reads alike to be read, found %d of %d", read, meant)
	}
}
