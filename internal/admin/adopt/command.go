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
	if found[2] != "" && !j.isBash { // in dash it never waited
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

// take makes a command one for sh and a worker.
func (j *job) take(command string) string {
	command = j.takeSleep(command)
	if j.isBash {
		command = j.takeRedirections(command)
	}
	return command
}

// Command is a command of a crontab as the payload of its model has it: without a random wait that is its spread, and with the redirections of sh. Where
// SHELL was no bash, the payload may have the command as it was.
func Command(logged string) string { return (&job{isBash: true}).take(logged) }

// elsewhere is what means something else to a worker, but where the second pattern matches, too.
var elsewhere = []struct {
	found, but *regexp.Regexp
	text       string
}{
	{regexp.MustCompile(`\\\\`), nil, `of \\ cron of Debian makes one backslash; cronie keeps two, as here`},
	{regexp.MustCompile(`sleep.*RANDOM|RANDOM.*sleep`), ownBash,
		"RANDOM is empty in dash, the sh of Debian and Ubuntu, so that nothing waits there: write spread into the policy, and leave the sleep out"},
	{regexp.MustCompile(`sleep.*(\brand\b|random\.|\bshuf)|(\brand\b|random\.|\bshuf).*sleep|` + ownBash.String() + `.*(sleep.*RANDOM|RANDOM.*sleep)`), nil,
		"a random sleep stays in the command, and counts against the timeout: write spread in a policy instead"},
	{regexp.MustCompile(`\bflock(\s+-\S+|\s+[\d.]+)*\s+(-[a-zA-Z]*[nw]|--nb|--nonblock|--wait|--timeout)`),
		regexp.MustCompile(`\bflock(\s+-\S+|\s+[\d.]+)*\s(-[a-zA-Z]*E|--conflict-exit-code)|\|\|\s*(true|exit 0|:)\s*($|[;)&#])`),
		"flock -n or -w exits with 1 when another one runs, which counts as a failure here: leave it out, as no model runs twice at a time, or write -E 0"},
}

// ownBash matches a command that asks for a shell that has RANDOM.
var ownBash = regexp.MustCompile(`\b(?:ba|z|k)sh\s.*-\w*c\b`)

// inBackground says what a worker does with what runs in the background, by how the command says so.
var inBackground = map[string]string{
	"&": "an & leaves a program in the background, where a worker kills it when the shell has ended, as a success: leave the & out, unless the command waits",
	"&>": "sh reads &> as & and a redirection: the program is left in the background, where a worker kills it when the shell has ended, as a success: " +
		"write > FILE 2>&1",
}

func (j *job) noteCommand(command string) {
	for _, one := range elsewhere {
		if one.found.MatchString(command) && (one.but == nil || !one.but.MatchString(command)) {
			j.note(Differs, "%s", one.text)
		}
	}
	if found := background(command, false); found != "" {
		j.note(Differs, "%s", inBackground[found])
	}
}
