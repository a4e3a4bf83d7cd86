package adopt

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// cutInput returns the command of a line of a crontab as cron hands it to the shell: a \% is a %. input is true if a % without \ begins its input.
func cutInput(text string) (command string, input bool) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '%':
			return out.String(), true
		case text[i] == '\\' && i+1 < len(text):
			if i++; text[i] != '%' {
				out.WriteByte('\\')
			}
		}
		out.WriteByte(text[i])
	}
	return out.String(), false
}

const (
	first = `^(?:%)\s*(?:&&|;)\s*`
	// Behind guards only && keeps the meaning of what is left.
	behind = `^((?:(?:test|\[|command -v|cd)\s(?:[^'"` + "`" + `;|&()#]|>&\d)*&&\s*)+)(?:%)\s*&&\s*`
)

// randomSleeps are the waits that people write to spread starts: the number is the longest one, in the unit that follows, or in seconds.
var randomSleeps = strings.Join([]string{
	`sleep\s+"?\$\(\(\s*\$?RANDOM\s*%\s*(\d{1,6})\s*\)\)([smh]?)"?`,
	`sleep\s+"?\$\[\s*\$?RANDOM\s*%\s*(\d{1,6})\s*\]([smh]?)"?`,
	`sleep\s+"?\$\(\s*shuf -i [01]-(\d{1,6}) -n ?1\s*\)([smh]?)"?`,
	`(?:\S*/)?perl -e\s*['"]sleep int\(?\s*\(?rand\s*\(?(\d{1,6})\)?\)?\)?;?['"]()`,
	`(?:\S*/)?python3? -c\s*['"]import random; ?import time; ?time\.sleep\(random\.random\(\) ?\* ?(\d{1,6})\)['"]()`,
	`sleep\s+\$RANDOM(X{0})()`,
}, "|")

var sleeps = []*regexp.Regexp{
	regexp.MustCompile(strings.Replace(first, "%", randomSleeps, 1)), regexp.MustCompile(strings.Replace(behind, "%", randomSleeps, 1)),
}

// longestRandom is the largest value of $RANDOM.
const longestRandom = 32767 * time.Second

// takeSleep removes a random wait that is understood completely, and makes it the spread.
func (j *job) takeSleep(command string) string {
	for i, pattern := range sleeps {
		at := pattern.FindStringSubmatchIndex(command)
		if at == nil || at[1] == len(command) || command[at[1]] == '#' { // nothing would be left
			continue
		}
		spread, groups := longestRandom, pattern.FindStringSubmatch(command)[1+i:]
		for k := 0; k+1 < len(groups); k += 2 {
			if n, err := strconv.Atoi(groups[k]); err == nil {
				spread = time.Duration(n) * map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour}[groups[k+1]]
			}
		}
		before := ""
		if i == 1 {
			before = command[at[2]:at[3]]
		}
		j.spread = max(j.spread, spread)
		j.note(Carried, "the random sleep of up to %s is the spread of the policy: a fixed delay of each model", document.FormatDuration(spread))
		return before + command[at[1]:]
	}
	if randomWait.MatchString(command) {
		j.note(Differs, "a random sleep stays in the command, and counts against the timeout: write spread in a policy instead")
	}
	return command
}

// Command is a command of a crontab as the payload of its model has it: without a random wait that is its spread.
func Command(logged string) string { return new(job).takeSleep(logged) }

var (
	randomWait = regexp.MustCompile(`sleep.*(RANDOM|\brand|\bshuf)|(RANDOM|\brand|\bshuf).*sleep`)
	lockBusy   = regexp.MustCompile(`\bflock((?:\s+-\S+(?:\s+\d[\d.]*)?)+)\s(.*)`) // its own options, and the rest
	busyExit   = regexp.MustCompile(`\s(-[a-zA-Z]*[nw]|--nb|--nonblock|--wait|--timeout)`)
	ownExit    = regexp.MustCompile(`\s(-[a-zA-Z]*E|--conflict-exit-code)`)
	forgiven   = regexp.MustCompile(`\|\|\s*(true|exit 0|:)\s*($|[;)&#])`)
	background = regexp.MustCompile(`(^|[^&>|])&\s*\)?\s*$`)
)

// noteCommand notes what a command does that means something else to a worker.
func (j *job) noteCommand(command string) {
	if strings.Contains(command, `\\`) {
		j.note(Differs, `of \\ cron of Debian makes one backslash; cronie keeps two, as here`)
	}
	if lock := lockBusy.FindStringSubmatch(command); lock != nil && busyExit.MatchString(lock[1]) && !ownExit.MatchString(lock[1]) && !forgiven.MatchString(lock[2]) {
		j.note(Differs, "flock -n or -w exits with 1 when another one runs, which counts as a failure here: leave it out, as no model runs twice at a time, or write -E 0")
	}
	if background.MatchString(command) {
		j.note(Differs, "the & at its end: a worker kills what is left in the background when the shell has ended")
	}
}
