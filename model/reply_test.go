package model

import (
	"reflect"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
)

func TestACommandMaySayWhoWantsItByWhichNameAndWhereToAnswer(t *testing.T) {
	long := strings.Repeat("x", 200)
	for raw, want := range map[string]Command{
		`{"type":"run","uid":"a","command_id":"c1","reply_to":"q:reply:x","by":"ann"}`: {Type: CommandRun, UID: "a", ID: "c1", ReplyTo: "q:reply:x", By: "ann"},
		`{"type":"put","uid":"a","command_id":"c1","reply_to":"q:reply:x","by":"ann"}`: {
			Type: CommandPut, UID: "a", ID: "c1", ReplyTo: "q:reply:x", By: "ann", Definition: Definition{UID: "a", Payload: "{}"},
		},
		`{"type":"remove","uid":"a","command_id":"` + long + `"}`:              {Type: CommandRemove, UID: "a", ID: long},
		`{"type":"enable","uid":"a","by":" a\n\u001b[1mb "}`:                   {Type: CommandEnable, UID: "a", By: "a  [1mb"},
		`{"type":"run","uid":"a","command_id":null,"reply_to":null,"by":null}`: {Type: CommandRun, UID: "a"},
	} {
		if got, err := DecodeCommand([]byte(raw)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", raw, got, err, want)
		}
	}
}

func TestOfACommandThatIsRefusedTheRestIsStillKnown(t *testing.T) {
	id := "1-200 letters, digits or _.:@/+=~- (first a letter or digit), found "
	for raw, want := range map[string]struct {
		command Command
		reason  string
	}{
		`{"type":"dance","uid":"a","command_id":"c1","reply_to":"x","by":"ann"}`: {Command{Type: "dance", UID: "a", ID: "c1", ReplyTo: "x", By: "ann"}, "type: expected "},
		`{"type":7,"uid":"a","command_id":"c1"}`:                                 {Command{UID: "a", ID: "c1"}, "type: expected a text, found 7"},
		`{"type":"run","uid":"a","forse":1,"command_id":"c1"}`:                   {Command{Type: CommandRun, UID: "a", ID: "c1"}, "forse: expected one of uid, force, found an unknown field"},
		`{"type":"put","uid":"a b","command_id":"c1"}`:                           {Command{Type: CommandPut, UID: "a b", ID: "c1"}, "uid: expected "},
		`{"type":"run","uid":"a","command_id":"","reply_to":"x"}`:                {Command{Type: CommandRun, UID: "a", ReplyTo: "x"}, "command_id: expected " + id + `""`},
		`{"type":"run","uid":"a","command_id":"c1","reply_to":[]}`:               {Command{Type: CommandRun, UID: "a", ID: "c1"}, "reply_to: expected a text, found a list"},
	} {
		got, err := DecodeCommand([]byte(raw))
		got.Definition = Definition{}
		if err == nil || !strings.HasPrefix(err.Error(), want.reason) || !reflect.DeepEqual(got, want.command) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v, %s", raw, got, err, want.command, want.reason)
		}
	}
}

func TestAReplyNamesTheOutcomeAndWhatWasRefused(t *testing.T) {
	full, bare := Command{Type: CommandRun, UID: "a", ID: "c1"}, Command{Type: CommandType("\x1b" + strings.Repeat("x", 99)), UID: "no uid"}
	at := `"at":"` + FormatTime(monday) + `"}`
	for _, test := range []struct {
		command Command
		outcome Outcome
		reason  error
		want    string
	}{
		{full, Applied, nil, `{"command_id":"c1","uid":"a","type":"run","outcome":"applied",`},
		{full, Busy, document.Refuse("run", "x", `"y"`), `{"command_id":"c1","uid":"a","type":"run","outcome":"refused","counter":"busy","reason":"run: expected x, found \"y\"","field":"run","expected":"x","found":"\"y\"",`},
		{bare, CounterUnknownType, document.Refuse("", "x", "y"), `{"type":"` + strings.Repeat("x", 57) + `…","outcome":"refused","counter":"unknown_type","reason":"expected x, found y","expected":"x","found":"y",`},
		{full, CounterMalformed, document.Refuse(strings.Repeat("f", 9999), strings.Repeat("w", 9999), "y"), `{"command_id":"c1","uid":"a","type":"run","outcome":"refused","counter":"malformed","reason":"` +
			strings.Repeat("f", 997) + `…","field":"` + strings.Repeat("f", 997) + `…","expected":"` + strings.Repeat("w", 997) + `…","found":"y",`},
	} {
		if got := test.command.Reply(test.outcome, test.reason, monday); got != test.want+at {
			t.Errorf("\n got %s\nwant %s", got, test.want+at)
		}
	}
}

func TestADecisionSaysWhoWantedIt(t *testing.T) {
	for steps, want := range map[string]string{
		`05:00 put "refresh":"now","by":"ann"`: "ann", `05:00 run "by":"ann"`: "ann", `05:00 disable "by":"ann"`: "ann",
		`05:00 disable | 05:01 enable "by":"ann"`: "ann", `05:00 remove "by":"ann"`: "ann", "05:00 run": "", `05:00 run "by":"ann" | 05:00 start`: "",
	} {
		s := tell(t, daily, steps)
		if entry, _ := s.decision.Journal("tbl_1", monday); s.decision.By != want || entry.By != want {
			t.Errorf("%s: by %q, in the journal %q; want %q", steps, s.decision.By, entry.By, want)
		}
		if s.decision.Next.Disabled && s.decision.Next.DisabledWho != want {
			t.Errorf("%s: disabled by %q, want %q", steps, s.decision.Next.DisabledWho, want)
		}
	}
}
