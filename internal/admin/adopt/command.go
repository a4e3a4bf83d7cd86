package adopt

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// input matches a command whose input begins with a % without \.
var input = regexp.MustCompile(`^(?:[^\\%]|\\.)*%`)

// waits matches a random wait that people write to spread starts, before the rest of a command, perhaps behind guards. Its longest one is a number, in
// the unit that follows, or in seconds.
var waits = regexp.MustCompile(`(?s)^((?:(?:test|\[|command -v|cd)\s(?:[^'"` + "`" + `;|&()#]|>&\d)*&&\s*)*)(?:` + strings.Join([]string{
	`sleep\s+"?\$\(\(\s*\$?RANDOM\s*%\s*(\d{1,6})\s*\)\)([smh]?)"?`,
	`(?:\S*/)?perl -e\s*['"]sleep int\(?\s*\(?rand\s*\(?(\d{1,6})\)?\)?\)?;?['"]`,
	`(?:\S*/)?python3? -c\s*['"]import random; ?import time; ?time\.sleep\(random\.random\(\) ?\* ?(\d{1,6})\)['"]`,
}, "|") + `)\s*(&&|;)\s*([^#\s].*)$`)

// takeSleep removes a random wait that is understood completely, and makes it the spread.
func (j *job) takeSleep(command string) string {
	found := waits.FindStringSubmatch(command)
	if found == nil || found[1] != "" && found[6] == ";" { // behind guards only && keeps the meaning of what is left
		return command
	}
	spread, err := document.ParseDuration(found[2] + found[4] + found[5] + cmp.Or(found[3], "s"))
	if err != nil {
		return command
	}
	j.spread = max(j.spread, spread)
	j.note(Carried, "the random sleep of up to %s is the spread of the policy: a fixed delay of each model", document.FormatDuration(spread))
	return found[1] + found[7]
}

// Command is a command of a crontab as the payload of its model has it: without a random wait that is its spread.
func Command(logged string) string { return new(job).takeSleep(logged) }

// elsewhere is what means something else to a worker, but where the second pattern matches, too.
var elsewhere = []struct {
	found, but *regexp.Regexp
	text       string
}{
	{regexp.MustCompile(`\\\\`), nil, `of \\ cron of Debian makes one backslash; cronie keeps two, as here`},
	{regexp.MustCompile(`sleep.*(RANDOM|\brand\b|random\.|\bshuf)|(RANDOM|\brand\b|random\.|\bshuf).*sleep`), nil,
		"a random sleep stays in the command, and counts against the timeout: write spread in a policy instead"},
	{regexp.MustCompile(`\bflock(\s+-\S+|\s+[\d.]+)*\s+(-[a-zA-Z]*[nw]|--nb|--nonblock|--wait|--timeout)`),
		regexp.MustCompile(`\bflock(\s+-\S+|\s+[\d.]+)*\s(-[a-zA-Z]*E|--conflict-exit-code)|\|\|\s*(true|exit 0|:)\s*($|[;)&#])`),
		"flock -n or -w exits with 1 when another one runs, which counts as a failure here: leave it out, as no model runs twice at a time, or write -E 0"},
	{regexp.MustCompile(`(^|[^&>|])&\s*\)?\s*$`), nil, "the & at its end: a worker kills what is left in the background when the shell has ended"},
}

func (j *job) noteCommand(command string) {
	for _, one := range elsewhere {
		if one.found.MatchString(command) && (one.but == nil || !one.but.MatchString(command)) {
			j.note(Differs, "%s", one.text)
		}
	}
}
