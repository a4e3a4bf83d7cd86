package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

const aCrontab = "SHELL=/bin/bash\n0 6 * * * import-feed \"a: b\"\n\n@daily root-check # %\n5 4 * * * sleep $((RANDOM \\% 60)); tidy\n"

func TestACrontabIsWrittenAsADirectoryThatCanBeApplied(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, out := at(t, server), filepath.Join(t.TempDir(), "models")
		c.in = aCrontab
		code, stdout, _ := c.run("import", "crontab", "-", "--timeout", "1h", "--timezone", "Europe/Berlin", "--out", out)
		failIf(t, code != exitDiffer, "expected exit code %d, found %d", exitDiffer, code)
		expectContains(t, stdout, "left_out  standard input line 1: SHELL", "left_out  standard input line 4: the text after %", "carried   standard input line 5: tidy")
		expectContains(t, c.do("apply", "-f", out, "--owner", "ann"), "create   policy  crontab-1h-spread-1m", "create   model   import-feed-d41da2", "create   model   tidy-")
		model := c.object("model", "get", "import-feed-d41da2")
		failIf(t, model["payload"].(map[string]any)["command"] != `import-feed "a: b"`, "expected the command in the payload, found %v", model)

		// What is there is not overwritten, even where the same would be written.
		expectContains(t, c.fail(exitFailed, "import", "crontab", "-", "--timeout", "1h", "--timezone", "UTC", "--out", out), "expected a new or empty directory, found 2 files")
	})
}

func TestWithoutATimeoutNothingIsWrittenAndTheLinesThatNeedOneAreListed(t *testing.T) {
	c, out := nowhere(t), filepath.Join(t.TempDir(), "models")
	c.in = aCrontab
	code, stdout, stderr := c.run("import", "crontab", "-", "--timezone", "UTC", "--out", out)
	failIf(t, code != exitUsage, "expected exit code %d, found %d: %s", exitUsage, code, stdout)
	expectContains(t, stderr, "standard input line 2: import-feed-d41da2 needs a timeout", "standard input line 5: tidy-", "for 2 models")
	_, err := os.Stat(out)
	failIf(t, err == nil, "expected no directory, found one")
}

func TestALineThatHasATimeoutOfItsOwnNeedsNoOther(t *testing.T) {
	c := nowhere(t)
	c.in = "0 6 * * * timeout -k 5 90m /x\n"
	expectContains(t, c.do("import", "crontab", "-", "--timezone", "UTC"), "timeout: 1h31m5s\n", "misfire: skip\n", "command: timeout -k 5 90m /x\n")
}

func TestTheSummaryOfAnImportSaysTheZonesAndTheSlotsThatItNeeds(t *testing.T) {
	c := nowhere(t)
	for crontab, want := range map[string]string{
		"0 6 * * * /x": "1 model in Etc/UTC; 0 refused, 0 left out, 0 differ\n",
		"CRON_TZ=America/New_York\n0 6 * * * /x\n0 7 * * * /y": "2 models in America/New_York; 0 refused",
		"0 5 * * * /x\nCRON_TZ=America/New_York\n0 6 * * * /x": "2 models in Etc/UTC and America/New_York; 0 refused",
		"0 6 1 1 *": "0 models in Etc/UTC; 1 refused",
		"0 5 * * * /x\nCRON_TZ=Asia/Tokyo\n0 6 * * * /x\nCRON_TZ=Asia/Seoul\n0 6 * * * /x\nCRON_TZ=Asia/Dubai\n0 6 * * * /x": "4 models in Etc/UTC, Asia/Tokyo, Asia/Seoul and 1 other zone;",
		strings.Repeat("0 6 * * * /x\n", 4): "0 differ\n",
		strings.Repeat("0 6 * * * /x\n", 5): "0 differ; up to 5 start in the same minute, and a worker takes 4 at a time: give it --concurrency 5,",
	} {
		c.in = crontab
		_, _, stderr := c.run("import", "crontab", "-", "--timeout", "1h", "--timezone", "Etc/UTC")
		expectContains(t, stderr, want)
	}
}

func TestTheUsersOfTheMachineAreReadFromItsList(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "etc"), 0o700))
	must(t, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0::/root:/bin/sh\n\nann:x:1000:1000::/home/ann:/bin/sh\n"), 0o600))
	failIf(t, strings.Join(usersOf(root), " ") != "root ann", "expected root and ann, found %v", usersOf(root))
	failIf(t, len(usersOf(filepath.Join(root, "none"))) > 0, "expected no user of no list")
}

func TestTheExitCodeOfAnImportSaysWhetherAllIsCarriedOver(t *testing.T) {
	c := nowhere(t)
	for crontab, want := range map[string]int{
		"0 6 * * * a": exitDone, "\ufeff0 6 * * * a": exitDone, "MAILTO=a\n0 6 * * * a": exitDiffer, "0 6 * * * flock -n /l a": exitDiffer, "0 66 * * * a\n0 6 * * * a": exitFailed, "# a": exitFailed,
	} {
		c.in = crontab
		code, stdout, stderr := c.run("import", "crontab", "-", "--timeout", "1h", "--timezone", "Europe/Berlin")
		failIf(t, code != want || strings.Contains(stdout, "uid: a") == (crontab == "# a"), "%q: expected exit code %d, found %d\n%s%s", crontab, want, code, stdout, stderr)
	}
	c.in = "0 6 * * * a%b"
	_, _, stderr := c.run("import", "crontab", "-", "--timeout", "1h", "--timezone", "UTC", "-o", "json")
	first, _, _ := strings.Cut(stderr, "\n")
	notes := c.objects(first)
	failIf(t, notes[0]["kind"] != "left_out" || notes[0]["line"] != 1.0, "expected a note in JSON, found %v", notes)
	c.refuses(exitUsage, map[string]string{
		"import crontab - --timezone Nowhere":            "--timezone: expected",
		"import crontab - --timeout soon --timezone UTC": "--timeout: expected",
		"import crontab": "expected one file",
		"import":         "expected one of crontab",
	})
}

func TestTheZoneOfTheMachineIsThatOfCronOrElseAskedFor(t *testing.T) {
	for name, c := range map[string]struct{ written, link, want, wantsErr string }{
		"both name one":          {"Asia/Tokyo\n", "/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo", ""},
		"they differ":            {"Europe/Berlin\n", "/usr/share/zoneinfo/Asia/Tokyo", "", `"Asia/Tokyo" and "Europe/Berlin"`},
		"the file":               {"Europe/Berlin\n", "", "Europe/Berlin", ""},
		"the link":               {"", "../usr/share/zoneinfo/America/New_York", "America/New_York", ""},
		"the file names nothing": {"local\n", "/usr/share/zoneinfo/UTC", "", `"local"`},
		"none":                   {"", "", "", "name the same one"},
		"the link leads nowhere": {"", "/etc/zones/1", "", "name the same one"},
	} {
		root := t.TempDir()
		must(t, os.Mkdir(filepath.Join(root, "etc"), 0o700))
		if c.written != "" {
			must(t, os.WriteFile(filepath.Join(root, "etc/timezone"), []byte(c.written), 0o600))
		}
		if c.link != "" {
			must(t, os.Symlink(c.link, filepath.Join(root, "etc/localtime")))
		}
		got, err := machineZone(root)
		failIf(t, got != c.want || (err == nil) != (c.wantsErr == "") || err != nil && !strings.Contains(err.Error(), c.wantsErr), "%s: expected %q, found %q: %v", name, c.want+c.wantsErr, got, err)
	}
}

func TestTheCrontabsOfTheSystemAreKnownByTheirPath(t *testing.T) {
	for path, want := range map[string]bool{"/etc/crontab": true, "/etc/cron.d/certbot": true, "/etc/../etc/cron.d/a": true, "crontab": false, "/etc/cron.d/a/b": false, "-": false} {
		failIf(t, isSystemCrontab(path) != want, "%s: expected %v, found %v", path, want, !want)
	}
}

func TestAWorkerRunsCommandsOnlyIfItIsAskedTo(t *testing.T) {
	c := nowhere(t)
	c.refuses(exitUsage, map[string]string{
		"worker --shell --exec true":         "found --exec and --shell",
		"worker --shell -- true":             "expected arguments only with --exec",
		"worker --exec true --shell-allow a": "expected --shell-allow only with --shell",
		"worker --shell --shell-allow a·":    `found "a "`,
		"worker":                             "expected one of --exec PROGRAM, --shell, --http URL and --fetch DIR, found none",
	})
}

func TestTheCommandsOfACrontabRunThroughDaemonsAndAWorker(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, out, dir := at(t, server), filepath.Join(t.TempDir(), "models"), t.TempDir()
		c.in = "0 6 * * * date \"+\\%Z $REFRESHD_UID\" > " + dir + "/ran\n0 6 * * * touch " + dir + "/never\n"
		c.do("import", "crontab", "-", "--timeout", "1h", "--timezone", "UTC", "--out", out)
		uids := regexp.MustCompile("uid: (.*)").FindAllStringSubmatch(readFile(t, filepath.Join(out, "models.yaml")), -1)
		date, never := uids[0][1], uids[1][1]
		c.do("apply", "-f", out, "--owner", "ann")
		for _, args := range [][]string{{"dispatcher"}, {"poller"}, {"worker", "--shell", "--shell-allow", "date \"+%Z $REFRESHD_UID\" > " + dir + "/ran"}} {
			c.start(args...)
		}
		c.do("model", "run", date, never)
		check.Eventually(t, "one command runs, and the other is refused", func() bool {
			return c.object("model", "get", date)["last_success_at"] != nil && c.object("model", "get", never)["failing_since"] != nil
		})
		expectContains(t, readFile(t, filepath.Join(dir, "ran")), "UTC "+date)
		expectContains(t, c.do("history", never), "a command that --shell-allow allows")
		failIf(t, c.object("model", "get", never)["status"] == "disabled", "expected the model to wait for its next time")
		_, err := os.Stat(filepath.Join(dir, "never"))
		failIf(t, err == nil, "expected no file, found one")
	})
}

func TestTheLogOfCronIsComparedWithWhatWasImported(t *testing.T) {
	c, out := nowhere(t), filepath.Join(t.TempDir(), "models")
	c.in = "0 6 * * * import-feed acme\nSHELL=/bin/bash\n*/30 1-3 * * * sleep $((RANDOM \\% 600)); tick\n30 7 * * * tick\n"
	c.run("import", "crontab", "-", "--timeout", "1h", "--timezone", "Europe/Berlin", "--out", out)
	log := "2026-10-25T00:00:01+02:00 host systemd[1]: Reached target.\n"
	// cron starts the job in both of the equal hours.
	for _, at := range []string{"01:00:01+02:00", "01:30:01+02:00", "02:00:01+02:00", "02:30:01+02:00", "02:00:01+01:00", "02:30:01+01:00", "03:00:01+01:00", "03:30:01+01:00"} {
		log += "2026-10-25T" + at + " host CRON[7]: (ann) CMD (sleep $((RANDOM % 600)); tick)\n"
	}
	log += "2026-10-25T06:00:01+01:00 host CRON[7]: (ann) CMD (import-feed acme)\n2026-10-25T07:30:01+01:00 host CRON[7]: (ann) CMD (tick)\n"
	text := c.differs("shadow", file(t, "syslog", log), "-f", out, "--timezone", "Europe/Berlin", "--within", "30s")
	expectContains(t, text, "10 runs of 3 models", "8 agree within 30s", "unplanned  2")
}

func TestADumpOfAnotherSchedulerIsWrittenAsModels(t *testing.T) {
	c := nowhere(t)
	c.in = "sweep: {cron: \"0 6 * * *\", class: SweepJob}\n"
	code, stdout, stderr := c.run("import", "sidekiq-cron", "-", "--timeout", "1h", "--timezone", "UTC")
	failIf(t, code != exitDiffer, "expected exit code %d, found %d", exitDiffer, code)
	expectContains(t, stdout, "uid: sweep\n", "class: SweepJob")
	expectContains(t, stderr, "1 model in UTC;")
	c.in = "sweep: [\n"
	expectContains(t, c.fail(exitFailed, "import", "sidekiq-cron", "-", "--timeout", "1h", "--timezone", "UTC"), "standard input: read YAML")
}
