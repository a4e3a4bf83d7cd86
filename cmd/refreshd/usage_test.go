package main

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestWrongUsageIsToldWithoutAskingRedis(t *testing.T) {
	const of = " --policy ../../examples/policies/twice-daily.txt"
	nowhere(t).refuses(exitUsage, map[string]string{
		"refresh":     `unknown command "refresh"` + "\n",
		"models -l a": `unknown command "models"; nearest: refreshd model` + "\n", "modell": "nearest: refreshd model\n", "circiut ls": "nearest: refreshd circuit ls\n",
		"crontabs -": "nearest: refreshd import crontab\n", "list models": "nearest: refreshd model ls\n", "put": "nearest: refreshd model put, refreshd calendar put, refreshd policy put\n",
		"inspect a": "nearest: refreshd model get, refreshd bulk show, refreshd circuit show\n", "--redis redis://x modles": "nearest: refreshd model\n",
		"model gett a --fast": `found "gett"; nearest: refreshd model get` + "\n", "hold lsit": `hold: expected one of ls, found "lsit"; nearest: refreshd hold ls` + "\n",
		"failures list": `failures: expected one of show, run, found "list"` + "\n",
		"model copy":    `model: expected one of put, get, ls, rm, run, enable, disable, history, export, import, found "copy"`,
		"model":         "found nothing", "stats --fast": "unknown flag: --fast\n",
		"dispatcher --max-queue 5": "unknown flag: --max-queue; nearest: --max-queued", "model ls --quue x": "unknown flag: --quue; nearest: --queue",
		"dispatcher --max-queued 0": `--max-queued: expected at least 1, found "0"`, "dispatcher --max-queued many": `--max-queued: expected a whole number, found "many"`,
		"dispatcher --for soon": `--for: expected a duration such as 500ms, 30s or 1h, found "soon"`,
		"poller --batch 0":      `--batch: expected 1 to 1000, of a poller 2 to 1000, found "0"`, "poller --batch 5000": "batch: expected 2 to 1000, found 5000",
		"stats --message-cap 0": `--message-cap: expected 4096 to 67108864, found "0"`,
		"stats -o xml":          `--output: expected one of table, json, found "xml"`, "model ls -o svg": `--output: expected one of table, json, found "svg"`,
		"simulate -o xml" + of:      `--output: expected one of table, json, svg, found "xml"`,
		"stats --log-level warning": `--log-level: expected one of trace, debug, info, warn, error, found "warning"`,
		"stats --redis http://x":    "http", "stats --queue a·b": "queue: expected 1-64 letters", "stats --config /no/such/file": "--config: open /no/such/file",

		"model get": "expected the uid of a model, found none", "model get a b": "expected the uid of one model, found 2", "explain": "expected the uid of a model, found none",
		"model rm": "expected the uid of a model, found none", "model run": "expected the uid of a model, found none", "model run a·b": "uid: expected 1-200 letters",
		"model put": "expected one file, or - for standard input, found 0", "model put - --format xml": `--format: expected one of auto, yaml, json, jsonl, found "xml"`,
		"model import": "expected one file, or - for standard input, found 0", "model export -l status=busy": "status: expected one of",
		"model ls --status busy": `--status: expected one of`, "model ls --sort size": "--sort: expected one of due, failing", "model ls -l tenant": `terms such as "tenant=t1"`,
		"model ls --after x": "--after: expected a cursor as ls has printed it", "model ls --sort due --after eyJ1Ijoi": "--after: expected a cursor as ls has printed it",
		"model ls --sort due --after eyJ1aWQiOiJhIn0": "--after: expected the cursor of a list in the same order",
		"model run a -l tenant=t1":                    "expected uids or a selector, found both", "model run a --rate 1/s": "--rate: expected -l with it, found uids",

		"worker": "expected one of --exec PROGRAM, --shell, --http URL and --fetch DIR, found none", "worker --http http://x --fetch x": "found --http and --fetch",
		"worker --fetch x y": "expected arguments only with --exec, found y", "worker --http http://x --concurrency 0": `--concurrency: expected 1 to 10000, found "0"`,
		"worker --fetch x --queue ..,a": "do not begin with a dot", "poller --queue a --queue b,a": "--queue: expected each queue once, found a,b,a",
		"poller --queue a,b·c": "queue: expected 1-64 letters", "up --redis redis://x --port 1": "--port: expected no --redis beside it",
		"up --traces ftp://host": "traces: expected the URL of a collector", "notifier": "--routes: expected a file, found nothing",
		"notifier --routes x --dashboard-url javascript:alert(1)": "--dashboard-url: expected a URL such as",
		"dashboard --listen 0.0.0.0:0":                            "listen: expected an address of loopback, or a token beside it",
		"dashboard --token sixteen·bytes·or·more --token-file x":  "--token: expected it or --token-file, found both",
		"bench --models 0": "--models: expected at least 1, found 0", "conformance": "expected the command of a worker, found nothing",
		"health ftp://x": "health: expected a URL such as", "doctor --limit 0": "--limit: expected at least 1, found 0", "doctor extra": "",
		"acl --role root":                          `--role: expected one of dispatcher, poller, worker, notifier, foreign-worker, application, subscriber, operator, viewer, found "root"`,
		"acl --password-file /no/such/file":        "--password-file: expected a file that can be read, found open /no/such/file",
		"acl --queue a·b":                          "queue: expected 1-64 letters",
		"apply --owner ann":                        "--filename: expected a directory",
		"apply -f x":                               "--owner: expected 1-60 letters",
		"apply -f x --owner ann --max-delete 101%": `--max-delete: expected a number from 0, or a`,

		"freshness --at yesterday": "--at: expected an RFC 3339 time", "freshness --at 2026-01-01T00:00:00Z -l status=late": "--at: expected no --selector",
		"freshness --at 2026-01-01T00:00:00Z --histogram": "--at: expected no --selector",
		"forecast --for 59s":                              "--for: expected 1m to 31d", "forecast --drain 0/m": "--drain: expected a rate such as 600/m or 10/s",
		"forecast --by size": "--by: expected host", "forecast --spread x": "--spread: expected a duration",
		"level --within 25h": "--within: expected 2s to 24h", "level --plan --apply": "expected one of --plan, --apply, --clear",
		"failures --by size": "--by: expected fingerprint, policy, host, label:NAME or a key", "failures --past --by host": "--past: expected neither --by nor --selector",
		"failures -l tenant": `terms such as "tenant=t1"`, "release ": "id: expected 1-200 letters",
		"rejected requeue": "expected the ID of a rejected message, or several, or --all, found neither", "rejected drop --all x": "found both",
		"undelivered drop": "expected the ID of an undelivered message, or several, or --all, found neither",
		"queue set":        "expected --model-name, --attempt-name, --payload or --new-error-above, found none", "queue set --payload below": "payload: expected",

		"policy put": "found 0 arguments", "policy get a b": "found 2 arguments", "policy diff a": "found 1 arguments",
		"simulate": "--policy: expected a file, - or the name of a stored policy, found nothing", "simulate x": "unknown command",
		"simulate --policy - --outcomes -":                    "expected standard input (-) once, found it 2 times",
		"simulate --outcomes o --seed 1" + of:                 "--outcomes: expected no --seed",
		"simulate --until 1d --days 3" + of:                   "--until: expected no --days beside it",
		"simulate --days -1" + of:                             "--days: expected 1 to 3660, found -1",
		"simulate --limit 100001" + of:                        "--limit: expected 1 to 100000, found 100001",
		"simulate --start soon" + of:                          `--start: expected a time such as 2026-11-21T06:00 or 2026-11-21T06:00:00Z, from 1970 to 2200, found "soon"`,
		"simulate --start 2300-01-01" + of:                    "--start: expected a time",
		"simulate --until soon" + of:                          "--until: expected a time",
		"simulate --start 2026-01-05 --until 2026-01-04" + of: "--until: expected a time after --start",
		"simulate --seed x" + of:                              `--seed: expected a whole number, found "x"`,
		"simulate --fail x" + of:                              `--fail: expected a percentage such as 5%, found "x"`,
		"simulate --lost 101%" + of:                           `--lost: expected a percentage such as 5%, found "101%"`,
		"simulate --lost NaN" + of:                            `--lost: expected a percentage such as 5%, found "NaN"`,
		"simulate --fail 60 --lost 50" + of:                   "--fail: expected at most 100% together with --lost, found 110%",
		"simulate --duration 1m-x" + of:                       `--duration: expected a duration or a range such as 1m-5m, found "1m-x"`,
		"simulate --duration 5m-1m" + of:                      "--duration: expected a duration or a range",

		"schedule next": `--rule: expected a rule such as`, "schedule next ": `expected a rule such as`, "schedule last": `schedule: expected one of next, found "last"`,
		"schedule next --rule FREQ=DAILY;BYHOUR=24":             `--rule BYHOUR: expected numbers from 0 to 23`,
		"schedule next --rule FREQ=DAILY\nFREQ=DAILY;BYHOUR=24": `--rule line 2 BYHOUR: expected numbers from 0 to 23`,
		"schedule next 0·25·*·*·*":                              `in the hour (field 2 of the cron expression), found "25"`,
		"schedule next every·2·dogs":                            `"every 2 hours", found "every 2 dogs" ("dogs" is not known)`,
		"schedule next 0·0·30·2·*":                              `--rule: expected a rule that occurs at least once`,
		"schedule next @daily --timezone Mars":                  `--timezone: expected an IANA time zone`,
		"schedule next @daily --dtstart soon":                   `--dtstart: expected a wall clock time`,
		"schedule next @daily --after soon":                     `--after: expected a time such as 2026-11-21T06:00`,
		"schedule next @daily --after 1969-12-31T23:00:00Z":     `from 1970 to 2200, found "1969-12-31T23:00:00Z"`,
		"schedule next @daily -n 0":                             `--count: expected 1 to 1000, found 0`,
		"schedule next @daily --count 1001":                     `--count: expected 1 to 1000, found 1001`,
		"schedule next @daily -n many":                          `--count: expected a whole number, found "many"`,
		"schedule next @daily --rule @daily":                    `expected one rule, found an argument and --rule`,

		"shadow": "expected one log of the old system", "shadow - --format xml": "--format: expected one of auto, csv, jsonl, monitor",
		"shadow - --columns url=x": "--columns: expected uid, at, ended, outcome or error", "shadow - --outcomes 1=x": "--outcomes: expected a word",
		"shadow - --timezone Berlin": "--timezone: expected an IANA time zone", "shadow - --within soon": "--within: expected a duration", "shadow - --from soon": "--from: expected a time",
	})
	nowhere(t).refuses(exitFailed, map[string]string{
		"stats":                         "redis://127.0.0.1:1: read the settings of the queue: ",
		"doctor":                        "read the settings of the queue",
		"simulate --policy twice-daily": "read the settings of the queue",
		"policy get /no/such/file":      "/no/such/file", "policy get .": "found a directory",
	})
	for _, done := range []string{"--help", "version", "--version"} {
		nowhere(t).do(done)
	}
}

func TestWhatAQueueHasNotOrDoesNotAllowIsRefused(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.fleet()
	c.refuses(exitUsage, map[string]string{
		"model rm -l tenant=t1": "If you mean it, add --yes.", "model run --selector=": "If you mean it, add --yes.",
		"model run -l tenant=t1 --rate 1/y": "--rate: expected a number from 1 to 1000000, a slash and a time from 1s to 1d", "model run -l status=faling": "did you mean failing?",
		"hold": "--reason: expected why", "hold --reason x --until 2030-01-01T00:00:00Z --for 2h": "--until: expected it or --for, found both",
		"hold --reason x --until 2020-01-01T00:00:00Z": "--until: expected an RFC 3339 time after", "hold --reason x --for soon": `--for: expected a length of time such as 2h, found "soon"`,
		"hold --reason x --within 3d": "--within: expected 0s to 1d", "hold --reason x -l status=due": "selector: expected status=failing, or no status",
		"hold --reason x --id a·b": "id: expected 1-200 letters, digits or _.:@/+=~-", "hold --reason x -l tenant": `selector: expected terms such as "tenant=t1"`,
		"limit set example.com --running 1": "key: expected a key such as host=example.com, or a template", "limit set host=a": "expected running or rate, or both, found neither",
		"limit set host=a --rate often": "--rate: expected a number from 1 to 1000000", "circuit open example.com": "expected a key such as host=example.com",
		"circuit open host=a·b": "expected a key such as host=example.com", "circuit open {host(input_url)}": "expected a key such as host=example.com",
		"circuit set queue --share half": `--share: expected a share such as 50% or 0.5, found "half"`, "circuit set queue --share 300%": "--share: expected 5% to 100%, found 3",
		"circuit set queue --window 1s": "--window: expected 10s to 1d, found 1s", "circuit set queue --min -1": "--min: expected 1 to 1000000 attempts, found -1",
		"circuit set host=example.com --on": "expected queue, as the circuits of other keys are set", "queue create": "--parts: expected ", "queue create --parts 0": "--parts: expected ", "queue create --parts two": "--parts: expected ",
		"queue create --parts 1025": "--parts: expected ",
		"failures show x":           "error: expected the id of a fingerprint, 12 hex digits, or other", "failures run x": "error: expected the id of a fingerprint",
		"model run m1 --by two\nlines": "by: expected at most 60 bytes on one line, found ", "model run m1 --by ·x": "by: expected at most 60 bytes on one line, found ",
		"model run m1 --by \x1b[1m": "by: expected at most 60 bytes on one line, found ",
	})
	c.refuses(exitFailed, map[string]string{
		"bulk show x":   "expected the id of a bulk that is not over, or was within a day, found none of that name",
		"bulk cancel x": "found none of that name", "failures show 0123456789ab": "expected a fingerprint with which models are failing",
		"explain b": "b: expected the uid of a stored model, found none of that name", "release x": "expected the id of a hold, found none of that name",
		"release": "expected a hold, found none", "limit rm host=a": "expected a limit that was set, found none of that name",
		"circuit close host=a": "expected the key of an open circuit", "calendar rm x": "expected the name of a calendar, found none of that name",
		"policy rm x": "x: expected the name of a stored policy, found none of that name", "policy get x": "x: expected a file or the name of a stored policy, found neither",
		"simulate --policy x": "x: expected a file or the name of a stored policy, found neither", "rejected requeue x": "x: expected the ID of a rejected message, found none of that ID",
		"undelivered requeue x": "expected the ID of an undelivered message",
	})
}
