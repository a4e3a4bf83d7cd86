package shadow

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// Commands finds the models of the commands that cron logs.
type Commands struct {
	Written func(command string) string // the command as an import writes it into a payload

	models map[string][]commanded // by the command as cron logs it
}

type commanded struct {
	uid, user string
	source    Source
}

// Add adds a model, if its payload has a command. The label user decides between models of one command.
func (c *Commands) Add(uid, payload string, labels map[string]string, source Source) {
	var fields struct{ Command string }
	if json.Unmarshal([]byte(payload), &fields) == nil && fields.Command != "" {
		if c.models == nil {
			c.models = make(map[string][]commanded)
		}
		command := visible(fields.Command)
		c.models[command] = append(c.models[command], commanded{uid, labels["user"], source})
	}
}

// visible writes a command as cron logs it: control characters as ^X, and bytes above 0177 in octal.
func visible(command string) string {
	var out strings.Builder
	for _, b := range []byte(command) {
		switch {
		case b < ' ' || b == 0o177:
			out.WriteString("^" + string(rune(b^0o100)))
		case b > 0o177:
			fmt.Fprintf(&out, "\\%03o", b)
		default:
			out.WriteByte(b)
		}
	}
	return out.String()
}

// find returns the uid of the model of a command: of several those of the user count, of these the one that is planned for that minute, or else the
// last. Without a model it is the command itself.
func (c *Commands) find(user, command string, at time.Time) string {
	models := c.models[visible(command)]
	if len(models) == 0 {
		models = c.models[visible(c.Written(command))]
	}
	if len(models) == 0 {
		return document.Shorten(command, document.MaxFound)
	}
	if own := slices.DeleteFunc(slices.Clone(models), func(one commanded) bool { return one.user != user }); len(own) > 0 {
		models = own
	}
	for _, one := range models[:len(models)-1] {
		minute := at.Truncate(time.Minute)
		m, err := one.source(at.AddDate(0, 0, -1)) // its schedule begins with that day
		if err != nil || m.Schedule == nil {
			continue
		}
		if next, ok := m.Schedule.Next(minute.Add(-time.Second)); ok && next.Equal(minute) {
			return one.uid
		}
	}
	return models[len(models)-1].uid
}

// logged matches a line of the log of the system: the time in one of its two forms, and user and command of a job that cron starts. A line of
// journalctl itself has none of these.
var logged = regexp.MustCompile(`^(?:-- |(\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:?\d\d)?|[A-Z][a-z]{2} [ \d]\d [\d:]{8}) \S+ ` +
	`(?:(?i:(?:\S*/)?crond?)\[\d+\]: \(([^)]*)\) CMD \((.*)\)$|[^ :]+: ))`)

// cron reads a line of the log of the system; one of another program, or about something else, has no run.
func (l *Log) cron(line string) ([]Run, error) {
	found := logged.FindStringSubmatch(line)
	if found == nil || found[4] == "" {
		return nil, nil
	}
	text := found[1]
	if short, err := time.ParseInLocation(time.Stamp, text, l.Zone); err == nil { // it has no year, and is not of the future
		year := l.Now.In(l.Zone).Year()
		if short.AddDate(year, 0, -1).After(l.Now) {
			year--
		}
		text = short.AddDate(year, 0, 0).Format("2006-01-02T15:04:05")
	} else if n := len(text); strings.ContainsAny(text[n-5:n-4], "+-") {
		text = text[:n-2] + ":" + text[n-2:]
	}
	at, err := simulate.ParseTime(text, l.Zone)
	if err != nil {
		return nil, err
	}
	run := Run{UID: l.Commands.find(found[3], found[4], at), At: at}
	if found[2] == "" {
		run.Again = schedule.Again(at, l.Zone)
	}
	return []Run{run}, nil
}
