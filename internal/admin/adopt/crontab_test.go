package adopt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

var winter = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// rendered is all that an import writes and lists.
func rendered(t *testing.T, a *Adopted) string {
	t.Helper()
	var out bytes.Buffer
	check.Must(t, a.WritePolicies(&out))
	check.Must(t, a.WriteModels(&out))
	out.WriteString("=== list\n")
	for _, note := range a.Notes {
		fmt.Fprintf(&out, "%s %d %s: %s\n", note.Kind, note.Line, note.UID, note.Text)
	}
	return out.String()
}

func TestTwentyCrontabsBecomeTheModelsAndTheListThatWereReviewed(t *testing.T) {
	files := check.Got(filepath.Glob("testdata/*.crontab"))(t)
	check.StopIf(t, len(files) != 20, "expected 20 crontabs, found %d", len(files))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := check.Got(os.ReadFile(file))(t)
			options := Options{Timezone: "Europe/Berlin", Timeout: time.Hour, System: strings.Contains(file, ".system."), Now: winter}
			got, golden := rendered(t, read(string(text), options)), strings.TrimSuffix(file, "crontab")+"golden"
			if *update {
				check.Must(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			check.Equal(t, string(check.Got(os.ReadFile(golden))(t)), got)
		})
	}
}

// read reads a crontab, which never fails.
func read(text string, o Options) *Adopted {
	a, _ := Crontab(text, o)
	return a
}

var usual = Options{Timezone: "Europe/Berlin", Timeout: time.Hour, Now: winter}

// listOf is what an import lists, one line each.
func listOf(a *Adopted) string {
	var lines []string
	for _, note := range a.Notes {
		lines = append(lines, fmt.Sprintf("%d %s", note.Line, note.Kind))
	}
	return strings.Join(lines, ", ")
}

func TestALineOfACrontabIsReadAsCronReadsIt(t *testing.T) {
	for line, want := range map[string]struct{ rule, command, list string }{
		"0 6 * * * a":                    {"0 6 * * *", "a", ""},
		"  0\t6  * * *\t a  b ":          {"0 6 * * *", "a  b ", ""},
		"@DAILY a":                       {"@DAILY", "a", ""},
		`0 6 * * * date +\%F`:            {"0 6 * * *", "date +%F", ""},
		`0 6 * * * a \\% b`:              {"", "", "1 left_out"},                  // the \ escapes the \
		`0 6 * * * a \n \\ \`:            {"0 6 * * *", `a \n \\ \`, "1 differs"}, // Debian's makes one \ of two
		`0 6 * * * a \n \`:               {"0 6 * * *", `a \n \`, ""},
		`0 6 * * * a # b`:                {"0 6 * * *", "a # b", ""},
		"0 6 * * * a%b":                  {"", "", "1 left_out"},
		"0 6 * * * %b":                   {"", "", "1 left_out"},
		"0 6 * * * A=b a":                {"0 6 * * *", "A=b a", ""},
		"0 6 * * * a\r\n":                {"0 6 * * *", "a", ""},
		"-0 6 * * * a":                   {"0 6 * * *", "a", "1 carried"},
		"0 6 * * *":                      {"", "", "1 refused"},
		"@daily":                         {"", "", "1 refused"},
		"@reboot a":                      {"", "", "1 left_out"},
		"@every 5m a":                    {"", "", "1 refused"},
		"0 6 * * 8 a":                    {"", "", "1 refused"},
		"0 22-2 * * * a":                 {"", "", "1 refused"},
		"0 6 * * * \xff":                 {"", "", "1 refused"},
		"A = b":                          {"", "", "1 left_out"},
		`"A B"='c'`:                      {"", "", "1 left_out"},
		`MAILTO=""`:                      {"", "", "1 carried"},
		"SHELL=/bin/sh":                  {"", "", ""},
		"CRON_TZ=Mars/Base\n0 6 * * * a": {"", "", "1 carried, 2 refused"},
		"RANDOM_DELAY=x\n0 6 * * * a":    {"0 6 * * *", "a", "1 refused"},
		"# 0 6 * * * a\n\n   # b":        {"", "", ""},
		"0 6 * * * root a":               {"0 6 * * *", "root a", "1 differs"},
		"0 6 * * * ann /bin/a":           {"0 6 * * *", "ann /bin/a", ""},
		"0 6 * * * news if [ -x /a ]; then /a; fi":           {"0 6 * * *", "news if [ -x /a ]; then /a; fi", "1 differs"},
		"0 6 * * * if [ -x /a ]; then /a; fi":                {"0 6 * * *", "if [ -x /a ]; then /a; fi", ""},
		"0 6 * * * php /a":                                   {"0 6 * * *", "php /a", ""},
		"0 6 * * * a\x00b":                                   {"", "", "1 refused"},
		"RANDOM_DELAY=99999999999999999\n":                   {"", "", "1 refused"},
		"0 6 * * * sleep $((RANDOM \\% 99999))h; a":          {"0 6 * * *", "sleep $((RANDOM % 99999))h; a", "1 differs"},
		"0 6 * * * certbot renew --no-random-sleep-on-renew": {"0 6 * * *", "certbot renew --no-random-sleep-on-renew", ""},
		"0 6 * * * sleep 5; brand a":                         {"0 6 * * *", "sleep 5; brand a", ""},
		"0 6 * * * flock -n /l a":                            {"0 6 * * *", "flock -n /l a", "1 differs"},
		"0 6 * * * flock -xn /l a":                           {"0 6 * * *", "flock -xn /l a", "1 differs"},
		"0 6 * * * flock -w 60 /l a":                         {"0 6 * * *", "flock -w 60 /l a", "1 differs"},
		"0 6 * * * flock --timeout=60 /l a":                  {"0 6 * * *", "flock --timeout=60 /l a", "1 differs"},
		"0 6 * * * flock -n /l grep -E x":                    {"0 6 * * *", "flock -n /l grep -E x", "1 differs"},
		"0 6 * * * flock -n /l a || exit 1":                  {"0 6 * * *", "flock -n /l a || exit 1", "1 differs"},
		"0 6 * * * flock -n /l a || true":                    {"0 6 * * *", "flock -n /l a || true", ""},
		"0 6 * * * flock -n /l a || exit 0":                  {"0 6 * * *", "flock -n /l a || exit 0", ""},
		"0 6 * * * (flock -n 9 || :) 9>/l":                   {"0 6 * * *", "(flock -n 9 || :) 9>/l", ""},
		"0 6 * * * flock -n -E 0 /l a":                       {"0 6 * * *", "flock -n -E 0 /l a", ""},
		"0 6 * * * flock /l a -n":                            {"0 6 * * *", "flock /l a -n", ""},
		"0 6 * * * a > /dev/null 2>&1":                       {"0 6 * * *", "a > /dev/null 2>&1", ""},
		"0 6 * * * (a; b &)":                                 {"0 6 * * *", "(a; b &)", "1 differs"},
		"0 6 * * * sleep `shuf -i 3-9 -n 1`; a":              {"0 6 * * *", "sleep `shuf -i 3-9 -n 1`; a", "1 differs"},
		"30 2 * * * a":                                       {"30 2 * * *", "a", "1 differs"},              // a gap
		"*/30 2 * * * a":                                     {"*/30 2 * * *", "a", "1 differs, 1 differs"}, // a gap, and twice
		"0 6 * * * a\x1b[31m":                                {"0 6 * * *", "a\x1b[31m", ""},
	} {
		a := read(line, usual)
		rule, command := "", ""
		if len(a.Models) > 0 {
			var payload struct{ Command string }
			check.Must(t, json.Unmarshal([]byte(a.Models[0].Payload), &payload))
			rule, command = a.Models[0].Rule, payload.Command
		}
		if rule != want.rule || command != want.command || listOf(a) != want.list {
			t.Errorf("%q: expected %+v, found %q, %q and %s: %v", line, want, rule, command, listOf(a), a.Notes)
		}
	}
}

func TestTheCrontabOfAUserIsNotTakenForOneOfTheSystem(t *testing.T) {
	options := usual
	options.System = true
	a := read("0 6 * * * /bin/a\n0 6 * * * ann /bin/a", options)
	check.FailIf(t, len(a.Models) != 1 || a.Notes[0].Kind != Refused || !strings.Contains(a.Notes[0].Text, "Leave out --system"), "expected a hint, found %v", a.Notes)
}

func TestAWaitAtRandomBecomesASpreadOnlyWhereTheRestMeansTheSame(t *testing.T) {
	for command, want := range map[string]struct {
		command string
		spread  time.Duration
	}{
		"sleep $((RANDOM % 60)); a":                                                        {"a", time.Minute},
		"sleep $(( $RANDOM % 10 ))m && a":                                                  {"a", 10 * time.Minute},
		`sleep "$((RANDOM%3600))" ; a; b`:                                                  {"a; b", time.Hour},
		"test -x /a -a \\! -d /b && perl -e 'sleep int(rand(43200))' && a":                 {"test -x /a -a \\! -d /b && a", 12 * time.Hour},
		"command -v a >/dev/null 2>&1 && cd /x && sleep $((RANDOM % 60)) && a":             {"command -v a >/dev/null 2>&1 && cd /x && a", time.Minute},
		"/usr/bin/perl -e 'sleep int rand 60' && a":                                        {"a", time.Minute},
		"python3 -c 'import random; import time; time.sleep(random.random() * 3600)' && a": {"a", time.Hour},

		"sleep $((RANDOM % 60)); # a":              {"sleep $((RANDOM % 60)); # a", 0},
		"sleep $((RANDOM % 60));":                  {"sleep $((RANDOM % 60));", 0},
		"x && sleep $((RANDOM % 60)) && a":         {"x && sleep $((RANDOM % 60)) && a", 0},
		"echo 'x && sleep $RANDOM && a'":           {"echo 'x && sleep $RANDOM && a'", 0},
		"cd '/x && sleep $RANDOM && a'":            {"cd '/x && sleep $RANDOM && a'", 0},
		"cd /x; y && sleep $RANDOM && a":           {"cd /x; y && sleep $RANDOM && a", 0},
		"(cd /x && sleep $RANDOM && a)":            {"(cd /x && sleep $RANDOM && a)", 0},
		"test -f /x # && sleep $RANDOM && a":       {"test -f /x # && sleep $RANDOM && a", 0},
		"sleep 30; a":                              {"sleep 30; a", 0},
		"x && sleep $((RANDOM % 60)); a":           {"x && sleep $((RANDOM % 60)); a", 0},
		"x || sleep $((RANDOM % 60)) && a":         {"x || sleep $((RANDOM % 60)) && a", 0},
		"sleep $((RANDOM % 60 + 5)); a":            {"sleep $((RANDOM % 60 + 5)); a", 0},
		"sleep $((RANDOM % 60))":                   {"sleep $((RANDOM % 60))", 0},
		"sleep $((RANDOM % 60)) | a":               {"sleep $((RANDOM % 60)) | a", 0},
		"sleep $((RANDOM % 99999999999999999)); a": {"sleep $((RANDOM % 99999999999999999)); a", 0},
	} {
		j := &job{isBash: true}
		if got := j.takeSleep(command); got != want.command || j.spread != want.spread {
			t.Errorf("%q: expected %+v, found %q and %s", command, want, got, j.spread)
		}
	}
}

// uidsOf returns the uids of the models of lines, in their order.
func uidsOf(lines ...string) (uids []string) {
	for _, m := range read(strings.Join(lines, "\n"), usual).Models {
		uids = append(uids, m.UID)
	}
	return uids
}

func TestTheUidOfALineDependsOnItsCommandAndNotOnOtherLines(t *testing.T) {
	lines := []string{
		"0 6 * * * /usr/bin/feeds run acme", "0 7 * * * /opt/feeds run acme", "0 8 * * * /usr/bin/feeds run bolt", "@daily backup",
		"0 6 * * * ''", "0 6 * * * ../$X", "0 6 * * * Ünïcode", "5 5 * * * cd /tmp",
	}
	want := []string{
		"feeds-run-acme-70ea27", "feeds-run-acme-04c9f4", "feeds-run-bolt-bd8ae1", "backup-f03faf", "job-7e9a91", "x-14aaba", "n-code-b01c0b", "job-c2913b",
	}
	check.Equal(t, want, uidsOf(lines...))
	for i, line := range lines {
		check.Equal(t, want[i:i+1], uidsOf(line))
	}
	check.Equal(t, want[:1], uidsOf(strings.Replace(lines[0], "0 6", "30 9", 1)))
}

func TestAFurtherLineOfACommandHasADigestOfItsTimesInItsUid(t *testing.T) {
	uids := uidsOf("@daily a", "* 1 * * * a", "1 * * * * a", "* * * * * a", "0,30 9 * * 1-5 a", "@daily a", "CRON_TZ=Asia/Tokyo", "1 * * * * a", "1 * * * * a",
		"0,5,10,15,20,25,30,35,40 0,1,2,3,4,5,6,7,8,9 * * * a", "0,5,10,15,20,25,30,35,40 0,1,2,3,4,5,6,7,8 * * * a")
	for i := range uids {
		uids[i] = strings.TrimPrefix(uids[i], "a-022a69")
	}
	check.Equal(t, []string{"", "@5e0a48", "@3a1a3f", "@1cec0f", "@726efa", "@87c7bc", "@73e43f", "@73e43f~2"}, uids[:8])
	check.FailIf(t, uids[8] == uids[9], "expected two uids, found %s twice", uids[8])
}

func TestNoSecretOfACommandGetsIntoAUid(t *testing.T) {
	for command, want := range map[string]string{
		"curl -u ann:geheim https://ann:geheim@feeds.example.com:8443/geheim?key=geheim": "curl",
		`wget -q -O - "https://a.example.com/a?b=geheim&c=geheim" >/dev/null 2>&1`:       "wget",
		`curl -fsS "https://feeds.example.com/geheim" > /dev/null`:                       "curl",
		"curl -H 'Authorization: Bearer geheim' x":                                       "curl",
		"wget --header \"Cookie: a; geheim\" x":                                          "wget",
		"mysql -p geheim shop":                                                           "mysql-shop",
		"mysql -pgeheim shop":                                                            "mysql",
		"backup --password geheim all":                                                   "backup-all",
		"backup --password=geheim all":                                                   "backup",
		"backup geheim@example.com:geheim token=geheim all":                              "backup-all",
		"PGPASSWORD=geheim pg_dump shop":                                                 "pg_dump-shop",
		`sh -c "cd /x && sync -k 'geheim a' all"`:                                        "sh",
		"flock -n /l -c 'sync -k geheim all'":                                            "sync-all",
		"nice -n 10 sudo -n timeout 20m sync all":                                        "sync-all",
	} {
		check.Equal(t, want, programName(command))
	}
}

func TestWhatIsWrittenIsReadBackWhateverACommandHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		command := "a" + rapid.StringMatching("[ -~äß€\t\u2028\u202e\U0001F600\x01\x7f]{0,200}").Draw(t, "command")
		line := "*/5 * * * * " + strings.NewReplacer("\n", "", "\r", "", "%", `\%`, `\`, `/`).Replace(command)
		want := strings.ReplaceAll(command, `\`, `/`)
		a := read(line, usual)
		var out bytes.Buffer
		if err := a.WriteModels(&out); err != nil || len(a.Models) != 1 {
			t.Fatalf("expected one model, found %v: %v, %v", a.Models, a.Notes, err)
		}
		err := definitions.ReadModels("models.yaml", &out, definitions.FormatAuto, func(m definitions.Model) error {
			var payload struct{ Command string }
			if err := cmp.Or(m.Err, json.Unmarshal([]byte(m.Definition.Payload), &payload)); err != nil {
				return err
			}
			if payload.Command != want {
				t.Fatalf("expected %q, found %q", want, payload.Command)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestAModelWithoutATimeoutHasNoneAndItsLine(t *testing.T) {
	options := usual
	options.Timeout = 0
	need := read("# \n0 6 * * * a", options).Models
	check.FailIf(t, len(need) != 1 || need[0].Line != 2 || need[0].Policy.Timeout != 0 || !strings.HasPrefix(need[0].UID, "a-"), "expected a of line 2, found %+v", need)
}
