package adopt

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refreshd/refreshd/model/document"
)

// assignment matches a line of a crontab that sets a variable. A job never has an = behind its first word.
var assignment = regexp.MustCompile(`^(?:"([^"]*)"|'([^']*)'|([^\s="']+))\s*=\s*(.*)$`)

// crontab reads lines as cron(8) of Debian and cronie do.
type crontab struct {
	options Options
	zone    string        // of the lines that follow
	delay   time.Duration // of cronie, of the lines that follow
	users   []string      // seen so far
	jobs    []*job
	notes   []Note
}

// Crontab reads a crontab. A wrong line harms itself only: cron(8) would refuse them all.
func Crontab(text string, o Options) *Adopted {
	c := &crontab{options: o, zone: o.Timezone}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		switch {
		case line == "" || line[0] == '#':
			continue
		case !utf8.ValidString(line) || strings.Contains(line, "\x00"):
			c.note(number, Refused, "expected text in UTF-8 without a NUL, found other bytes")
			continue
		}
		if set := assignment.FindStringSubmatch(line); set != nil {
			c.set(number, set[1]+set[2]+set[3], strings.Trim(strings.TrimSpace(set[4]), `"'`))
		} else {
			c.job(number, line)
		}
	}
	c.noteSystem()
	return adopt("crontab", c.jobs, c.notes, o)
}

func (c *crontab) note(line int, kind Kind, text string) {
	c.notes = append(c.notes, Note{Line: line, Kind: kind, Text: text})
}

// set notes a variable, without its value, which may be a secret.
func (c *crontab) set(line int, name, value string) {
	switch name {
	case "CRON_TZ":
		c.zone = cmp.Or(value, c.options.Timezone)
		c.note(line, Carried, "CRON_TZ is the zone of the lines below, as in cronie; cron of Debian has none, and runs them in the zone of the machine")
	case "RANDOM_DELAY":
		minutes, err := strconv.Atoi(value)
		if err != nil || minutes < 0 || minutes > int(document.MaxDuration/time.Minute) {
			c.note(line, Refused, "RANDOM_DELAY: expected a number of minutes, at most ten years, found "+document.Found(value))
			return
		}
		c.delay = time.Duration(minutes) * time.Minute
		c.note(line, Carried, "RANDOM_DELAY of cronie is the spread of the policy of the lines below")
	case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING":
		kind := LeftOut
		if value == "" {
			kind = Carried
		}
		c.note(line, kind, name+": nothing is mailed; refreshd history and logs show what a command printed, and refreshd notifier sends mail about models that fail")
	case "SHELL":
		if value != "/bin/sh" {
			c.note(line, LeftOut, "SHELL: worker --shell runs sh; where a command needs another shell, write it into the command, as in bash -c '…'")
		}
	case "TZ":
		c.note(line, LeftOut, "TZ is the zone of the commands below, not of their times: set it where the worker starts")
	default:
		c.note(line, LeftOut, document.Shorten(name, maxName)+": set it where the worker starts: its commands find the environment of the worker")
	}
}

func (c *crontab) job(line int, text string) {
	j := &job{line: line, cron: true, zone: c.zone, spread: c.delay}
	if quiet, cut := strings.CutPrefix(text, "-"); cut {
		text = quiet
		j.note(Carried, "the - before the minute keeps cronie from logging; every attempt has a history here")
	}
	times, want := 5, "five times and a command"
	if text[:min(1, len(text))] == "@" {
		times, want = 1, "a name such as @daily and a command"
	}
	fields, rest := cutFields(text, times)
	j.rule = strings.Join(fields, " ")
	if c.options.System {
		var user []string
		want = strings.Replace(want, " and", ", a user and", 1)
		if user, rest = cutFields(rest, 1); len(user) > 0 {
			j.labels = map[string]any{"user": user[0]}
		}
	}
	user, _ := j.labels["user"].(string)
	command, input := cutInput(rest)
	switch {
	case user != "" && !userName.MatchString(user):
		c.note(line, Refused, "expected a user before the command, found "+document.Found(user)+": is this the crontab of a user? Leave out --system")
		return
	case strings.EqualFold(j.rule, "@reboot"):
		c.note(line, LeftOut, "@reboot: the start of a machine is no time; let its init system run it")
		return
	case command == "" && !input:
		c.note(line, Refused, "expected "+want+", found "+document.Found(text))
		return
	case input:
		c.note(line, LeftOut, "the text after % is the input of the command: write it into the command, as in printf '…' | COMMAND, or \\% for a percent sign")
		return
	}
	c.noteUser(j, user)
	command = j.takeSleep(command)
	j.noteCommand(command)
	j.payload = map[string]any{"command": command}
	j.name, j.same = programName(command), user+"\x00"+command
	c.jobs = append(c.jobs, j)
}

// noteUser says once of each user that its commands run as another one.
func (c *crontab) noteUser(j *job, user string) {
	if user != "" && !slices.Contains(c.users, user) {
		c.users = append(c.users, user)
		j.note(Differs, "the user %s is a label only: commands run as the user of the worker, so give each user a queue", document.Shorten(user, maxName))
	}
}

var (
	userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]*\$?$`)
	// begins matches a command with a user before it, or with a program that takes a path.
	begins   = regexp.MustCompile(`^(?:(root|www-data|nobody)\s|([a-z_][a-z0-9_-]*)\s+/)`)
	programs = regexp.MustCompile(`^(\w*sh|php|python3?|perl|ruby|node|java|find|rm|cp|mv|rsync|tar|cd|test|nice|flock|chronic|sudo|env|exec|time)$`)
)

// noteSystem asks whether the first word of all commands is a user.
func (c *crontab) noteSystem() {
	name := ""
	for _, j := range c.jobs {
		found := begins.FindStringSubmatch(j.payload["command"].(string))
		if c.options.System || found == nil || name != "" && found[1]+found[2] != name || programs.MatchString(found[2]) {
			return
		}
		name = found[1] + found[2]
	}
	if name != "" {
		c.jobs[0].note(Differs, "each command begins with %s: if that is a user, add --system", document.Shorten(name, maxName))
	}
}

// maxName bounds a name of the text in a note, in bytes.
const maxName = 40

// cutFields takes up to n words from the beginning of a text.
func cutFields(text string, n int) (fields []string, rest string) {
	rest = text
	for range n {
		rest = strings.TrimLeft(rest, " \t")
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			fields = append(fields, rest[:end])
		}
		rest = rest[end:]
	}
	return fields, strings.TrimLeft(rest, " \t")
}
