package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit"
)

func TestWhoeverSavesAPolicyInEnglishIsShownHowItWasRead(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	text := file(t, "nightly.txt", "Call this policy nightly. Refresh it daily at 6am Berlin time\nAllow up to 2 hours\n")
	for _, command := range []string{"check", "put"} {
		_, _, stderr := c.run("policy", command, text)
		expectContains(t, stderr, "read as: "+text+`: This policy is called "nightly". Refresh the model every day at 06:00 in the time zone Europe/Berlin. Allow 2 hours to complete. `)
		read := c.object("policy", command, text, "-o", "json")["read_as"].(map[string]any)
		expectContains(t, read["sentence"].(string), "Refresh the model every day at 06:00")
		next := read["next"].([]any)
		failIf(t, len(next) != 3 || read["timezone"] != "Europe/Berlin", "expected three times in Berlin, found %v", read)
	}
	for given, want := range map[string]string{
		"name: a\nrrule: daily at 6am\ntimezone: Europe/Berlin\ntimeout: 1h\n": "every day at 06:00 (Europe/Berlin); next: ",
		"name: a\nrrule: 0 6 * * *\ntimezone: Europe/Berlin\ntimeout: 1h\n":    "every day at 06:00 (Europe/Berlin); next: ",
		"name: a\nrrule: 0 6 1 * MON\ntimeout: 1h\n":                           `"FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=MO;BYHOUR=6;BYMINUTE=0;BYSECOND=0" (UTC); next: `,
		"Allow up to 2 hours": "Allow 2 hours to complete",
	} {
		c.in = given
		_, _, stderr := c.run("policy", "check", "-")
		expectContains(t, stderr, "read as: ", want)
		failIf(t, strings.Contains(stderr, "; next") != strings.Contains(given, "rrule"),
			"%s: expected next times of a rule alone, found %s", given, stderr)
	}
	c.policy(nightlyEnglish) // no notice: the rule is written as it is stored
	for _, from := range []string{file(t, "policy.yaml", nightlyYAML), "nightly"} {
		_, stdout, stderr := c.run("policy", "check", from, "-o", "json")
		failIf(t, strings.Contains(stdout+stderr, "read"), "%s: expected nothing of how it was read, found %s%s", from, stdout, stderr)
	}
}

func TestWhoeverSavesModelsIsShownOnceHowEachRuleInEnglishWasRead(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	var text strings.Builder
	text.WriteString("uid: rule\nrrule: FREQ=DAILY\n")
	for i := range operate.BatchSize + 1 {
		fmt.Fprintf(&text, "---\nuid: m%d\nrrule: daily at 6am\ntimezone: Europe/Berlin\n", i)
	}
	text.WriteString("---\nuid: again\nrrule: 6 AM every day Berlin time\n---\nuid: other\nrrule: daily at 6am\n---\nuid: own\npolicy: {rrule: daily at 7am, timeout: 1h}\n")
	path := file(t, "models.yaml", text.String())
	_, stdout, stderr := c.run("model", "put", path, "-o", "json")
	lines := slices.DeleteFunc(strings.SplitAfter(stderr, "\n"), func(line string) bool { return !strings.HasPrefix(line, "read as: ") })
	threeTimes := regexp.MustCompile(`every day at 06:00 \(Europe/Berlin\); next: (\w{3} \d{4}-\d\d-\d\d 06:00(, | and |\n)){3}`)
	stopIf(t, len(lines) != 3 || !threeTimes.MatchString(lines[0]), "expected one line of each rule in each zone, found %d\n%s", len(lines), stderr)
	expectContains(t, lines[0], "read as: "+path+" line 4: ")
	expectContains(t, lines[1], "every day at 06:00 (UTC); next: ")
	expectContains(t, lines[2], "every day at 07:00 (UTC); next: ")
	told := strings.Count(stdout, `"read_as":{"sentence":"every day at 0`)
	failIf(t, told != 3, "expected it of the first model of each rule, found %d", told)
	c.in = ""
	for i := range 200 {
		c.in += fmt.Sprintf("{\"uid\":\"m%d\",\"rrule\":\"every %d minutes\"}\n", i, i+1)
	}
	_, _, stderr = c.run("model", "put", "-")
	failIf(t, strings.Count(stderr, "read as: ") != 100, "expected the first 100 rules told, found %s", stderr)
}
