package conformance_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// logging are workers that do two attempts, of which one fails with the words of somebody else, by a log of their own or not.
var logging = map[string]string{
	"python": `import logging, os, refreshd, sys
def refresh(a):
    if a.uid == "b": worker.stop()
    else: raise RuntimeError("no\n\x1b[31mfeed")
if os.environ["LOG"] == "own": logging.getLogger("refreshd").handlers = [logging.StreamHandler(sys.stdout)]; logging.getLogger("refreshd").setLevel("INFO")
if os.environ["LOG"] == "off": logging.getLogger("refreshd").setLevel(logging.CRITICAL)
logging.getLogger().handlers = []
worker = refreshd.Worker(refresh, concurrency=1)
worker.run()`,
	"node": `const { Worker } = require("refreshd.js"), own = { info: (text) => console.log(text), error: (text) => console.log(text) };
const logger = { "": undefined, own, off: false, broken: {} }[process.env.LOG];
const worker = new Worker((a) => { if (a.uid === "b") worker.stop(); else throw new Error("no\n\x1b[31mfeed"); }, { concurrency: 1, logger });
worker.run();`,
	"php": `require getenv("FILE");
class Log { function info($text) { echo $text, "\n"; } function error($text) { echo $text, "\n"; } }
$logger = ["" => null, "own" => new Log(), "off" => false, "broken" => new stdClass()][getenv("LOG")];
$worker = new Refreshd\Worker(function ($a) use (&$worker) { $a->uid === "b" ? $worker->stop() : throw new Exception("no\n\e[31mfeed"); }, logger: $logger);
$worker->run();`,
}

// TestAWorkerPrintsItsStartEachAttemptAndEachResultUnlessTheProgramHasALog has the same words in each language.
func TestAWorkerPrintsItsStartEachAttemptAndEachResultUnlessTheProgramHasALog(t *testing.T) {
	const lines = "working for the queue q, 1 at a time\na: attempt 2 begins\na: failure after 0.N s: no [31mfeed\nb: attempt 0 begins\nb: success after 0.N s\n"
	number, begin := regexp.MustCompile(`0\.\d s`), regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d[ T][0-9:.,]+Z? refreshd: `)
	for _, language := range asking {
		for log, want := range map[string]string{"": lines, "own": lines, "off": "", "broken": lines} {
			if language == "python" && log == "broken" {
				continue
			}
			t.Run(language+" "+log, func(t *testing.T) {
				t.Parallel()
				s := testkit.Redis(t)
				push(t, s.Client(t), "a", `,"attempt_no":2`)
				push(t, s.Client(t), "b", "")
				said := startHandler(t, language, logging[language], s.URL, "REFRESHD_QUEUE=q", "LOG="+log).Output()
				if language == "python" { // it logs where the exception comes from
					said = regexp.MustCompile(`(?s)[^\n]*refreshing a\nTraceback.*?no\n \[31mfeed\n`).ReplaceAllString(said, "")
				}
				times := strings.Count(want, "\n")
				if log == "own" {
					times = 0
				}
				check.Equal(t, len(begin.FindAllString(said, -1)), times)
				check.Equal(t, number.ReplaceAllString(begin.ReplaceAllString(said, ""), "0.N s"), want)
			})
		}
	}
}
