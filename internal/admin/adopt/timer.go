package adopt

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// unit is a unit of systemd with its drop-ins.
type unit struct {
	name   string
	line   int
	values map[string][]string // by section.Name; an empty one resets the list
	lines  map[string]int      // of the last value
}

// last returns the value that counts of a name that takes one; empty: none.
func (u *unit) last(name string) string {
	values := u.values[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// heading matches the line above each file that systemctl cat prints.
var heading = regexp.MustCompile(`^# /\S*/([^/\s]+\.(?:timer|service))$`)

// units reads what systemctl cat prints, in the order of the units. A text that begins otherwise has none.
func units(text string) (all []*unit) {
	var u *unit
	section, number := "", 0
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "\x00")) {
		number += 1 + strings.Count(line, "\x00")
		line = strings.TrimSpace(strings.ReplaceAll(line, "\x00", " "))
		name, value, set := strings.Cut(line, "=")
		name = section + "." + strings.TrimSpace(name)
		switch found := heading.FindStringSubmatch(line); {
		case found != nil:
			u = &unit{name: found[1], line: number, values: map[string][]string{}, lines: map[string]int{}}
			all = append(all, u)
		case line == "" || line[0] == '#' || line[0] == ';':
		case u == nil:
			return nil
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case set && strings.TrimSpace(value) == "":
			delete(u.values, name)
		case set:
			u.values[name], u.lines[name] = append(u.values[name], strings.TrimSpace(value)), number
		}
	}
	return all
}

// Timers reads what systemctl cat of timers and their services prints, and writes a model for each OnCalendar, with the command of the service.
func Timers(text string, o Options) (*Adopted, error) {
	var jobs []*job
	var notes []Note
	all := units(text)
	if len(all) == 0 {
		return nil, document.Refuse("", "what systemctl cat NAME.timer NAME.service prints, where # /etc/systemd/system/NAME.timer stands above a file", "no such line")
	}
	byName := make(map[string]*unit)
	for _, u := range all {
		byName[u.name] = u
	}
	for _, u := range all {
		base, is := strings.CutSuffix(u.name, ".timer")
		if !is {
			continue
		}
		leave := func(line int, text string) {
			notes = append(notes, Note{Line: line, Kind: LeftOut, Text: document.Shorten(u.name, maxName) + ": " + text})
		}
		service := byName[cmp.Or(u.last("Timer.Unit"), base+".service")]
		if service == nil || len(service.values["Service.ExecStart"]) == 0 {
			leave(u.line, "expected its service with an ExecStart in the same text, as systemctl cat "+base+".timer "+base+".service prints it")
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(u.values)) {
			switch {
			case strings.HasPrefix(name, "Timer.On") && name != "Timer.OnCalendar":
				leave(u.lines[name], strings.TrimPrefix(name, "Timer.")+" counts from a start: write a rule such as every 15 minutes")
			case strings.HasPrefix(name, "Timer.") && !slices.Contains(understood, name):
				leave(u.lines[name], strings.TrimPrefix(name, "Timer."))
			}
		}
		for _, calendar := range u.values["Timer.OnCalendar"] {
			j := &job{line: u.lines["Timer.OnCalendar"], name: slug(base, `[^\w.-]+`), same: base, zone: o.Timezone}
			rule, zone, ok := schedule.FromCalendar(calendar)
			if !ok {
				notes = append(notes, Note{Line: j.line, Kind: Refused, Text: "OnCalendar: expected a calendar that has a rule, found " + document.Found(calendar)})
				continue
			}
			j.rule, j.zone = rule, cmp.Or(zone, j.zone)
			j.readService(u, service)
			jobs = append(jobs, j)
		}
	}
	return adopt("systemd", jobs, notes, o), nil
}

// understood are the values that are carried over.
var understood = []string{"Timer.OnCalendar", "Timer.Unit", "Timer.Persistent", "Timer.RandomizedDelaySec", "Service.ExecStart", "Service.Type", "Service.TimeoutStartSec",
	"Service.RuntimeMaxSec"}

// readService takes the command, and what the policy says.
func (j *job) readService(timer, service *unit) {
	var commands, others []string
	for _, command := range service.values["Service.ExecStart"] {
		plain := strings.TrimLeft(command, "-@+!:")
		if plain != command || strings.ContainsAny(command, "%$&;|<>()*?[]#~`{}\\") {
			j.note(Differs, "ExecStart: to sh letters such as $ and * mean something else than to systemd, and a %% or a prefix such as - nothing: check the command")
		}
		commands = append(commands, plain)
	}
	for _, name := range slices.Sorted(maps.Keys(service.values)) {
		if strings.HasPrefix(name, "Service.") && !slices.Contains(understood, name) {
			others = append(others, strings.TrimPrefix(name, "Service."))
		}
	}
	if len(timer.values["Timer.OnCalendar"]) > 1 {
		j.note(Differs, "each OnCalendar is a model of its own: two of them may run at one time")
	}
	if len(others) > 0 {
		j.note(Differs, "set it where the worker starts: %s", document.Shorten(strings.Join(others, ", "), document.MaxText))
	}
	if !slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(timer.last("Timer.Persistent"))) {
		j.note(Differs, "it is not Persistent, and a model runs once for what was missed: write misfire: skip into the policy")
	}
	j.spread = j.length("RandomizedDelaySec", timer.last("Timer.RandomizedDelaySec"))
	limit := "RuntimeMaxSec"
	if service.last("Service.Type") == "oneshot" {
		limit = "TimeoutStartSec"
	}
	j.timeout = j.length(limit, service.last("Service."+limit))
	j.payload = map[string]any{"command": strings.Join(commands, " && ")}
}

// spans writes the units of systemd as ours.
var spans = strings.NewReplacer("minutes", "m", "minute", "m", "min", "m", "hours", "h", "hour", "h", "hr", "h", "seconds", "s", "second", "s", "sec", "s",
	"days", "d", "day", "d", "weeks", "w", "week", "w", " ", "")

// length reads a time span of systemd, in seconds if it has no unit. Infinity is none.
func (j *job) length(name, text string) time.Duration {
	span, err := document.ParseDuration(spans.Replace(text))
	if err != nil && text != "" && text != "infinity" {
		j.note(Differs, "%s: expected a time span such as 1h 30min, found %s", name, document.Found(text))
	}
	return span
}
