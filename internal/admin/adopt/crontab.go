package adopt

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refreshd/refreshd/model/document"
)

var (
	// assignment matches a line of a crontab that sets a variable. A job never has an = behind its first word.
	assignment = regexp.MustCompile(`^(?:"([^"]*)"|'([^']*)'|([^\s="']+))\s*=\s*(.*)$`)
	ofUser     = regexp.MustCompile(`^(-?)(@\S+|\S+(?:[ \t]+\S+){4})()[ \t]+(.+)$`)
	ofSystem   = regexp.MustCompile(`^(-?)(@\S+|\S+(?:[ \t]+\S+){4})[ \t]+(\S+)(?:[ \t]+(.+))?$`)
	userName   = regexp.MustCompile(`^[a-z_][a-z0-9_-]*\$?$`)
)

// crontab reads lines as cron(8) of Debian and cronie do.
type crontab struct {
	*Adopted
	zone  string        // of the lines that follow
	delay time.Duration // of cronie, of the lines that follow
	bash  bool          // SHELL, of the lines that follow
	users []string      // seen so far
	lines []begun       // all commands, as far as no user was asked for
	loose []int         // lines that depend on the directory or the home
}

// Crontab reads a crontab. A wrong line harms itself only: cron(8) would refuse them all.
func Crontab(text string, o Options) (*Adopted, error) {
	c := &crontab{Adopted: &Adopted{source: "crontab", options: o}, zone: o.Timezone}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		switch set := assignment.FindStringSubmatch(line); {
		case line == "" || line[0] == '#':
		case !utf8.ValidString(line) || strings.Contains(line, "\x00"):
			c.note(number, Refused, "expected text in UTF-8 without a NUL, found other bytes")
		case set != nil:
			c.set(number, set[1]+set[2]+set[3], strings.Trim(strings.TrimSpace(set[4]), `"'`))
		default:
			c.job(number, line)
		}
	}
	c.noteUsers()
	c.noteLoose()
	return c.complete(), nil
}

const (
	mailed = "%s: nothing is mailed; refreshd history and logs show what a command printed, and refreshd notifier sends mail about models that fail"
	others = "%s: set it where the worker starts: its commands find the environment of the worker"
)

// told says of some variables what is not carried over.
var told = map[string]string{
	"MAILTO": mailed, "MAILFROM": mailed, "CONTENT_TYPE": mailed, "CONTENT_TRANSFER_ENCODING": mailed,
	"SHELL": "%s: worker --shell runs sh; where a command needs another shell, write it into the command, as in bash -c '…'",
	"TZ":    "%s is the zone of the commands below, not of their times: set it where the worker starts",
}

// set notes a variable, without its value, which may be a secret.
func (c *crontab) set(line int, name, value string) {
	text := cmp.Or(told[name], others)
	delay, err := document.ParseDuration(value + "m")
	switch {
	case name == "CRON_TZ":
		c.zone = cmp.Or(value, c.options.Timezone)
		c.note(line, Carried, "CRON_TZ is the zone of the lines below, as in cronie; cron of Debian has none, and runs them in the zone of the machine")
	case name == "RANDOM_DELAY" && err != nil:
		c.note(line, Refused, "RANDOM_DELAY: expected a number of minutes, at most ten years, found %s", document.Found(value))
	case name == "RANDOM_DELAY":
		c.delay = delay
		c.note(line, Carried, "RANDOM_DELAY of cronie is the spread of the policy of the lines below")
	case name == "SHELL" && value == "/bin/sh":
		c.bash = false
	case text == mailed && value == "":
		c.note(line, Carried, text, name)
	default:
		c.bash = name == "SHELL" && slices.Contains(likeBash, path.Base(value)) || name != "SHELL" && c.bash
		c.note(line, LeftOut, text, document.Shorten(name, maxName))
	}
}

func (c *crontab) job(line int, text string) {
	pattern, want := ofUser, "five times and a command, or a name such as @daily and a command"
	if c.options.System {
		pattern, want = ofSystem, "five times, a user and a command, or a name such as @daily, a user and a command"
	}
	found := append(pattern.FindStringSubmatch(text), make([]string, 5)...) // all empty: it does not match
	user, command := found[3], strings.ReplaceAll(found[4], `\%`, "%")
	j := &job{line: line, zone: c.zone, spread: c.delay, isBash: c.bash, rule: strings.Join(strings.Fields(found[2]), " ")}
	switch {
	case user != "" && !userName.MatchString(user):
		c.note(line, Refused, "expected a user before the command, found %s: is this the crontab of a user? Leave out --system", document.Found(user))
		return
	case command == "":
		c.note(line, Refused, "expected %s, found %s", want, document.Found(text))
		return
	case strings.EqualFold(j.rule, "@every"):
		length, rest, _ := strings.Cut(command, " ")
		c.note(line, Refused, "cron(8) knows no @every: write five times such as */5 * * * *, or a model into models.yaml by hand, with rrule: \"@every %s\" and the command %s",
			document.Shorten(length, maxName), document.Found(strings.TrimSpace(rest)))
		return
	case strings.EqualFold(j.rule, "@reboot"):
		c.note(line, LeftOut, "@reboot: the start of a machine is no time; let its init system run it")
		return
	case input.MatchString(found[4]):
		c.note(line, LeftOut, "the text after %% is the input of the command: write it into the command, as in printf '…' | COMMAND, or \\%% for a percent sign")
		return
	case found[1] != "":
		j.note(Carried, "the - before the minute keeps cronie from logging; every attempt has a history here")
	}
	if user == "" {
		c.lines = append(c.lines, begun{j, strings.Fields(command)})
	}
	if user != "" {
		j.labels = map[string]any{"user": user}
		if !slices.Contains(c.users, user) { // once of each
			c.users = append(c.users, user)
			j.note(Differs, "the user %s is a label only: commands run as the user of the worker, so give each user a queue", document.Shorten(user, maxName))
		}
	}
	command = j.take(command)
	j.takeTimeout(command)
	j.noteCommand(command)
	if isLoose(command) {
		c.loose = append(c.loose, line)
	}
	j.payload = map[string]any{"command": command}
	j.name, j.same = programName(command), user+"\x00"+command
	c.jobs = append(c.jobs, j)
}

// maxName bounds a name of the text in a note, in bytes.
const maxName = 40
