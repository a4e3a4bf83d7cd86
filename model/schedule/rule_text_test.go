package schedule

import (
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
)

func TestARuleSetPassesUnchangedForItsOwnReader(t *testing.T) {
	for _, rule := range []string{
		"FREQ=DAILY;BYHOUR=6", " freq=daily ", "RRULE:FREQ=DAILY\nEXDATE:20260101T000000", "RDATE:20260101T000000", "EXRULE:FREQ=DAILY", "rrule:",
		"INTERVAL=2", "DTSTART:20260101T000000Z", "every day FREQ=DAILY", "BEGIN:VEVENT",
	} {
		if got, err := RuleText(rule); got != rule || err != nil {
			t.Errorf("%q became %q, %v", rule, got, err)
		}
	}
}

func TestATextThatIsNoScheduleIsRefusedBeforeItIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"": "a rule such as", " \n": "a rule such as", strings.Repeat("every ", 1000): "at most 4096 bytes", "täglich um 6": "plain ASCII",
		strings.Repeat("every ", 65): "more than 64 words", "whenever": `"every`,
	} {
		if rule, err := RuleText(text); !errors.As(err, new(*document.Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %q, %v; want a refusal with %q", text, rule, err, want)
		}
	}
}

// FuzzRuleText looks for text that breaks the readers, and for rules that are written but cannot be read.
func FuzzRuleText(f *testing.F) {
	for _, text := range append(phraseExamples, "*/5 9-17 * * 1-5", "0 0 1,15 JAN-MAR sun", "59 23 31 2 7", "@weekly", "@every 1h30m", "0 6 * * 5L", "0 6 L * *",
		"every 1h30m", "every second", "every other Sunday at 5:59 p.m.", "once a week", "last day of every quarter", "FREQ=DAILY;BYHOUR=6") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := RuleText(text)
		field := (*document.Error)(nil)
		if err != nil {
			if !errors.As(err, &field) || field.Field != "rrule" || field.Found == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		RuleEnglish(rule)
		if rule == text {
			return
		}
		if again, err := RuleText(rule); again != rule || err != nil {
			t.Fatalf("%q is %q, which is read as %q, %v", text, rule, again, err)
		}
		// A written rule may ask for February 30, and for nothing else that is refused.
		_, err = Parse(rule, "", "2001-01-01")
		if err != nil && !strings.Contains(err.Error(), "never does") {
			t.Fatalf("%q is %q: %v", text, rule, err)
		}
	})
}
