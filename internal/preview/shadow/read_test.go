package shadow

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

func read(t *testing.T, log *Log, text string) (runs, refused []string) {
	t.Helper()
	err := log.Read(strings.NewReader(text), func(r Run) error {
		runs = append(runs, fmt.Sprintf("%d %s %s %s %s%s", r.Line, r.UID, r.At.Format("02T15:04:05"), r.length(), r.Outcome, r.ErrorType))
		return nil
	}, func(err *simulate.LineError) { refused = append(refused, err.Error()) })
	must(t, err)
	return runs, refused
}

func TestALogIsReadAsItsFirstLineSays(t *testing.T) {
	berlin := check.Got(schedule.Zone("Europe/Berlin"))(t)
	columns := check.Got(ParseColumns("uid=table_id, at=started,ended=finished,outcome=status,error=kind"))(t)
	want := []string{"2 tbl_1 05T04:00:00 3m0s success", "3 tbl_1 05T14:00:00 0s failureHTTP", "5 7 05T14:00:01 0s "}
	for name, text := range map[string]string{
		"commas": "table_id,started,finished,status,kind\ntbl_1,2026-10-05 06:00:00,2026-10-05 06:03:00,OK,\n" +
			"tbl_1,2026-10-05T14:00:00Z,,Failed,HTTP\r\n\n\"7\",1791208801,,,\n",
		"semicolons and a mark": "\ufeffstatus;table_id;started;kind;finished\nOK;tbl_1;2026-10-05 06:00:00;;2026-10-05 06:03:00\n" +
			"failed;tbl_1;2026-10-05T14:00:00Z;HTTP;\n\n;7;1791208801000;;\n",
		"JSON lines": "\n" + `{"table_id":"tbl_1","started":"2026-10-05 06:00","finished":"2026-10-05 06:03","status":"done"}` + "\n" +
			`{"table_id":"tbl_1","started":"2026-10-05T14:00:00Z","status":"error","kind":"HTTP","more":[1]}` + "\n\n" + `{"table_id":7,"started":1791208801}`,
		"JSON lines behind a mark": "\ufeff\n" + `{"table_id":"tbl_1","started":"2026-10-05 06:00","finished":"2026-10-05 06:03","status":"done"}` + "\n" +
			`{"table_id":"tbl_1","started":"2026-10-05T14:00:00Z","status":"error","kind":"HTTP"}` + "\n\n" + `{"table_id":7,"started":1791208801}`,
	} {
		t.Run(name, func(t *testing.T) {
			log := logOf(berlin)
			log.Columns = columns
			runs, refused := read(t, log, text)
			diff := cmp.Diff(want, runs)
			failIf(t, diff != "" || len(refused) > 0, "-want +got\n%s%v", diff, refused)
		})
	}
}

func TestWhatAnOldSystemPushesIsReadFromTheWire(t *testing.T) {
	entry := `"{\"big_table_uid\":\"tbl_1\",\"refresh_attempt_uid\":\"%s\",\"input_url\":\"https:\\/\\/example.com\\/\xc3\xbc\"}"`
	result := `"{\"type\":\"%s\",\"big_table_uid\":\"tbl_1\",\"request_attempt_uid\":\"%s\",\"error_type\":\"E\"}"`
	text := "OK\n" +
		`1791180000.5 [0 127.0.0.1:50001] "rpush" "bigtables-input" ` + fmt.Sprintf(entry, "a") + "\n" +
		`1791180001.000001 [0 127.0.0.1:50002] "LPOP" "bigtables-input"` + "\n" +
		`1791180002.0 [0 127.0.0.1:50002] "RPUSH" "bigtables-output" ` + fmt.Sprintf(result, "success", "old") + "\n" +
		`1791180003.5 [0 lua] "RPUSH" "bigtables-output" ` + fmt.Sprintf(result, "user_friendly_status", "a") + " " + fmt.Sprintf(result, "failure", "a") + "\n" +
		`1791180004.0 [0 unix:/run/redis.sock] "RPUSH" "bigtables-input" ` + fmt.Sprintf(entry, "b") + "\n" +
		`1791180005.0 [0 [::1]:50001] "RPUSH" "bigtables-input" ` + fmt.Sprintf(entry, "c") + "\n" +
		`1791180006.0 [0 127.0.0.1:50001] "RPUSH" "bigtables-input" "nothing"` + "\n" +
		`1791180007.0 [0 127.0.0.1:50001] "SET" "a` + "\n"
	runs, refused := read(t, logOf(time.UTC), text)
	want := []string{"2 tbl_1 05T06:00:00 3s failureE", "6 tbl_1 05T06:00:04 0s lost", "7 tbl_1 05T06:00:05 0s "}
	equal(t, want, runs)
	failIf(t, len(refused) != 2 || !strings.HasPrefix(refused[0], "line 8: ") || !strings.HasPrefix(refused[1], "line 9: "),
		"expected lines 8 and 9 to be refused, found %q", refused)
}

func TestALineThatIsNoRunHarmsItselfOnly(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"a time":              {"m,soon,,", `line 2: started_at: expected a time such as 2026-11-21T06:00`},
		"a day with dots":     {"m,21.11.2026,,", `line 2: started_at: expected a time such as`},
		"an end before":       {"m,2026-10-05T06:00:00Z,2026-10-05T05:00:00Z,", "line 2: ended_at: expected a time from started_at on"},
		"an outcome":          {"m,2026-10-05T06:00:00Z,,1", `line 2: outcome: expected success, failure or lost, or a word that was given for one, found "1"`},
		"a uid":               {"a b,2026-10-05T06:00:00Z,,", "line 2: uid: expected 1-200 letters"},
		"a column too many":   {"m,2026-10-05T06:00:00Z,,,", "line 2: expected 4 columns, as in the header, found 5"},
		"an open quote":       {`"m,2026-10-05T06:00:00Z,,`, "line 2: expected a line of CSV"},
		"a line without end":  {strings.Repeat("x", 2*maxLine), "line 2: expected at most 1048576 bytes"},
		"control characters":  {"m\x1b[2J,2026-10-05T06:00:00Z,,", `found "m\x1b[2J"`},
		"a number out of all": {"m,99999999999999999999,,", "line 2: started_at: expected a time"},
	} {
		t.Run(name, func(t *testing.T) {
			runs, refused := read(t, logOf(time.UTC), "uid,started_at,ended_at,outcome\n"+test.line+"\nm,2026-10-05T06:00:00Z,,ok\n")
			failIf(t, len(refused) != 1 || !strings.Contains(refused[0], test.want), "expected %q, found %q", test.want, refused)
			failIf(t, len(runs) != 1 || runs[0] != "3 m 05T06:00:00 0s success", "expected the line after it to be read, found %q", runs)
		})
	}
}

func TestColumnsThatTheHeaderLacksAreRefused(t *testing.T) {
	log := logOf(time.UTC)
	log.Columns.Outcome = "state"
	err := log.Read(strings.NewReader("uid,started_at,status\n"), nil, nil)
	if refused := (*document.Error)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), `line 1: columns: expected one called "state", found uid, started_at, status`) {
		t.Errorf("expected the column to be named, found %v", err)
	}
}

func TestMapsOfColumnsAndOutcomesAreRead(t *testing.T) {
	for _, text := range []string{"uid", "uid=", "url=x", "uid=a,,at=b"} {
		_, err := ParseColumns(text)
		failIf(t, err == nil, "expected the columns %q to be refused", text)
	}
	for _, text := range []string{"1", "1=good", "=", "1=success,"} {
		_, err := ParseOutcomes(text)
		failIf(t, err == nil, "expected the outcomes %q to be refused", text)
	}
	more, err := ParseOutcomes("1=success, KILLED = lost")
	diff := cmp.Diff(map[string]simulate.Result{"1": simulate.Success, "killed": simulate.Lost}, more)
	failIf(t, err != nil || diff != "", "-want +got\n%s%v", diff, err)
}

func TestARunIsReadAcrossTwoEqualHours(t *testing.T) {
	london := check.Got(schedule.Zone("Europe/London"))(t)
	for line, want := range map[string]string{
		"m,2026-10-25 01:50,2026-10-25 01:10":          "2 m 25T00:50:00 20m0s ",
		"m,2026-10-25 01:50,2026-10-25 01:55":          "2 m 25T00:50:00 5m0s ",
		"m,2026-10-25 01:50,2026-10-25 02:10":          "2 m 25T00:50:00 1h20m0s ",
		"m,2026-10-25T01:50:00+00:00,2026-10-25 02:10": "2 m 25T01:50:00 20m0s ",
		"m,2026-10-25T01:50:00Z,2026-10-25T01:10:00Z":  "",
	} {
		runs, refused := read(t, logOf(london), "uid,started_at,ended_at\n"+line+"\n")
		failIf(t, len(runs)+len(refused) != 1 || strings.Join(runs, "") != want, "%s: expected %q, found %q, %q", line, want, runs, refused)
	}
}
