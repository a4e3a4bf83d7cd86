package adopt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// adopted is the command of a model of one line, and what is said of it.
func adopted(t *testing.T, text string) (command, list string) {
	t.Helper()
	a := read(text, usual)
	check.StopIf(t, len(a.Models) != 1, "%q: expected one model, found %d: %v", text, len(a.Models), a.Notes)
	var payload struct{ Command string }
	check.Must(t, json.Unmarshal([]byte(a.Models[0].Payload), &payload))
	for _, note := range a.Notes {
		if note.UID != "" {
			list += fmt.Sprintf("%s: %s\n", note.Kind, note.Text)
		}
	}
	return payload.Command, list
}

func TestWhatIsLeftInTheBackgroundDiffers(t *testing.T) {
	for command, want := range map[string]string{
		"/x/slow.sh &> /x/amp.log":                      "sh reads &>",
		"/x/slow.sh &>> /x/amp.log":                     "sh reads &>",
		"/x/slow.sh&>/x/amp.log":                        "sh reads &>",
		"nohup /x >/dev/null 2>&1 & echo $! > /run/pid": "an &",
		"(/x 100 &) ; echo":                             "an &",
		"{ /x & }; /y":                                  "an &",
		"/x &":                                          "an &",
		"/x & # later":                                  "an &",
		"/x 2>&1&":                                      "an &",
		"/x https://a.example.com/?a=1&b=2":             "an &",
		`/x "$(/y & echo)"`:                             "an &",
		"/x `/y & echo`":                                "an &",
		"/x $((1 & 2)) & /y":                            "an &",
		"sh -c '/x &'":                                  "an &",
		`/bin/sh -c "/x \"a b\" & "`:                    "an &",
		"su - ann -c '/x & '":                           "an &",
		"bash -c '/x & /y'":                             "an &",
		"sh -c '/x &> /y'":                              "sh reads &>",

		"/x && /y":                    "",
		"/x >&2":                      "",
		"/x <&3 2>&1":                 "",
		"/x |& /y":                    "",
		`/x a\&b`:                     "",
		"/x 'a & b'":                  "",
		`/x "a & b"`:                  "",
		`/x "it's" 'a & b'`:           "",
		`/x "a \" & b"`:               "",
		"/x $((1 & 2))":               "",
		`/x "$((1 & (2 & 3)))"`:       "",
		"/x # a & b":                  "",
		"/x a#b && /y":                "",
		"/x ${a#'&'} \"${b:-a & b}\"": "",
		"bash -c '/x &> /y'":          "",
		"grep -c 'a & b' /x":          "",
		"/x 'no end & ":               "",
		`/x \`:                        "",
	} {
		_, list := adopted(t, "0 6 * * * "+command)
		if found := strings.Contains(list, "differs: "); found != (want != "") || !strings.Contains(list, want) {
			t.Errorf("%s: expected %q, found %q", command, want, list)
		}
	}
}

func TestAnyTextIsReadAsACommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.StringMatching("[ a-b\"'`\\\\$(){}&<>|;#~/.\x00ä]{0,60}").Draw(t, "command")
		if got := bare(command); len(got) != len(command) {
			t.Fatalf("expected %d bytes, found %q", len(command), got)
		}
		background(command, true)
		isLoose(command)
		new(job).takeTimeout("timeout 9 " + command)
		if once := Command(command); Command(once) != once {
			t.Fatalf("expected %q, found %q", once, Command(once))
		}
	})
}

func TestARedirectionOfBashIsWrittenAsShReadsIt(t *testing.T) {
	for command, want := range map[string]string{
		"/x &> /y":                  "/x > /y 2>&1",
		"/x &>>/y; /z":              "/x >> /y 2>&1; /z",
		"/x a&>/y":                  "/x a > /y 2>&1",
		"(/x &>'/y z') && /z &> /w": "(/x > '/y z' 2>&1) && /z > /w 2>&1",
		"/x '&> a' \"&> b\"":        "/x '&> a' \"&> b\"",
	} {
		command, list := adopted(t, "SHELL=/bin/bash\n0 6 * * * "+command)
		if command != want || strings.Contains(list, "differs") || strings.Contains(list, "carried: &>") != !strings.HasPrefix(want, "/x '&") {
			t.Errorf("expected %q, found %q and %s", want, command, list)
		}
		if again := Command(command); again != want {
			t.Errorf("expected %q of the log of cron, found %q", want, again)
		}
	}
	for _, text := range []string{
		"SHELL=/bin/bash\n0 6 * * * /x &> /y-$(date)", "SHELL=/bin/bash\n0 6 * * * /x &> >(/y)", "SHELL=/bin/bash\nSHELL=/bin/sh\n0 6 * * * /x &> /y",
	} {
		_, list := adopted(t, text)
		check.FailIf(t, !strings.HasPrefix(list, "differs: sh reads &>"), "%q: expected that it differs, found %s", text, list)
	}
}

func TestASleepThatDashDoesNotKnowIsNoSpread(t *testing.T) {
	for _, command := range []string{"sleep $RANDOM; /x", "sleep $((RANDOM % 32400)); /x", "sleep ${RANDOM}s && /x", "R=$((RANDOM % 60)); sleep $R; /x"} {
		got, list := adopted(t, "0 6 * * * "+strings.ReplaceAll(command, "%", `\%`))
		check.FailIf(t, got != command || !strings.HasPrefix(list, "differs: RANDOM is empty in dash"), "%s: expected the reason, found %q and %s", command, got, list)
	}
	got, list := adopted(t, "0 6 * * * bash -c 'sleep $((RANDOM \\% 60)); /x'")
	check.FailIf(t, got == "/x" || !strings.HasPrefix(list, "differs: a random sleep stays"), "expected that it stays, found %q and %s", got, list)
	got, list = adopted(t, "SHELL=/usr/bin/bash\nMAILTO=\n0 6 * * * sleep $((RANDOM \\% 60)); /x")
	check.FailIf(t, got != "/x" || !strings.HasPrefix(list, "carried: the random sleep"), "expected a spread, found %q and %s", got, list)
}

func TestTheTimeoutOfACommandIsThatOfItsPolicyWithAMinuteMore(t *testing.T) {
	for command, want := range map[string]time.Duration{
		"timeout 90m sleep 5":                                91 * time.Minute,
		"timeout 20m /x":                                     21 * time.Minute,
		"timeout -k 5 90 /x":                                 2*time.Minute + 35*time.Second,
		"timeout -vk5s 90 /x":                                2*time.Minute + 35*time.Second,
		"timeout --kill-after=1m -s KILL 1h /x":              62 * time.Minute,
		"timeout --kill-after 1m --signal=9 1h /x":           62 * time.Minute,
		"timeout --foreground --preserve-status 2d /x":       48*time.Hour + time.Minute,
		"/usr/bin/timeout 30 /x":                             90 * time.Second,
		"timeout 1.5h /x > /y 2>&1":                          91 * time.Minute,
		"timeout .5 /x":                                      61 * time.Second,
		"timeout 20m /x 'a; b' >> \"/y-$(date +%F)\"":        21 * time.Minute,
		"cd /srv && timeout 20m php x || true":               21 * time.Minute,
		"test -x /x && nice -n 10 ionice -c3 timeout 20m /x": 21 * time.Minute,
		"A=b flock -n /l timeout 20m /x || exit 1":           21 * time.Minute,
		"sudo -u ann timeout 20m /x":                         21 * time.Minute,

		"timeout 0 /x":                 0,
		"timeout 0.0m /x":              0,
		"timeout $T /x":                0,
		"timeout -k $K 5m /x":          0,
		"timeout infinity /x":          0,
		"timeout 99999999d /x":         0,
		"timeout 20m /x; /y":           0,
		"timeout 20m /x && /y":         0,
		"timeout 20m /x | /y":          0,
		"timeout 20m /x || /y":         0,
		"timeout 20m /x & /y":          0,
		"timeout 20m /x `/y`":          0,
		"timeout 20m":                  0,
		"sleep 9; timeout 20m /x":      0,
		"/y && timeout 20m /x":         0,
		"flock -w 9 /l timeout 20m /x": 0,
		"echo timeout 20m /x":          0,
		"'timeout 20m /x'":             0,
	} {
		for own, expect := range map[time.Duration]time.Duration{0: want, time.Hour: max(want, 0)} {
			options := usual
			options.Timeout = own
			a := read("0 6 * * * "+strings.ReplaceAll(command, "%", `\%`), options)
			if expect == 0 {
				expect = own
			}
			if got := a.Models[0].Policy.Timeout; got != expect {
				t.Errorf("%s with --timeout %s: expected %s, found %s: %v", command, own, expect, got, a.Notes)
			}
			if said := strings.Contains(fmt.Sprint(a.Notes), "its own timeout of"); said != (want > 0) || !strings.Contains(a.Models[0].Payload, "timeout") {
				t.Errorf("%s: expected that it is said, and stays in the command, found %v and %s", command, a.Notes, a.Models[0].Payload)
			}
		}
	}
}

func TestOneNoteSaysThatCommandsDependOnWhereTheyStart(t *testing.T) {
	for command, want := range map[string]bool{
		"./rel.sh":                            true,
		"../rel.sh":                           true,
		"bin/rel.sh":                          true,
		"php artisan x":                       true,
		"/usr/bin/php -q artisan x":           true,
		"python3 x.py":                        true,
		"nice -n 5 sh x.sh":                   true,
		". venv/bin/activate && /x":           true,
		"cd app && ./y >> ~/log":              true,
		"cd && ./y":                           true,
		"cd ~/app && /y":                      true,
		"cd $HOME/app && /y":                  true,
		`/x "$HOME/a"`:                        true,
		"/x > log":                            true,
		"/x < in/data":                        true,
		"/x --all ./data":                     true,
		"make all":                            true,
		"npm run x":                           true,
		"/x && ./y":                           true,
		"(/x; ./y)":                           true,
		"cd /srv/app && php artisan x > log":  false,
		"cd '/srv/my app' && ./x":             false,
		"/x >> /var/log/x 2>&1":               false,
		"/x '> log' ./* ":                     true,
		"php /x.php":                          false,
		"php -r 'echo 1;'":                    false,
		"php -d a=b --define c=d /x.php":      false,
		"(flock -n 9 || :) 9>/l":              false,
		"python3 -m x":                        false,
		"bash -c '/x'":                        false,
		"make -C /srv/app all":                false,
		"npm --prefix=/srv/app run x":         false,
		"/x":                                  false,
		"backup-db":                           false,
		"curl -fsS https://a.example.com/x/y": false,
		"$APP/bin/x":                          false,
		"/x # ./y":                            false,
		"[ -x /x ] && /x":                     false,
		"ls ~ann/x":                           false,
	} {
		a := read("0 6 * * * "+command, usual)
		found := slices.ContainsFunc(a.Notes, func(n Note) bool {
			return n.Kind == Differs && n.UID == "" && strings.Contains(n.Text, "depends on where it starts")
		})
		check.FailIf(t, found != want, "%s: expected %v, found %v", command, want, a.Notes)
	}
	a := read("0 6 * * * /x\n0 6 * * * ./a\n0 6 * * * ./b\n0 6 * * * ./c\n", usual)
	check.FailIf(t, len(a.Notes) != 1 || a.Notes[0].Line != 2 || !strings.Contains(a.Notes[0].Text, "like 2 below"), "expected one note at line 2, found %v", a.Notes)
}
