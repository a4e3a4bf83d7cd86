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
	values := append([]string{""}, u.values[name]...)
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

// Timers reads what systemctl cat of timers and their services prints, and writes a model for each time of a timer, with the command of the service.
func Timers(text string, o Options) (*Adopted, error) {
	all := units(text)
	if len(all) == 0 {
		return nil, document.Refuse("", "what systemctl cat NAME.timer NAME.service prints, where # /etc/systemd/system/NAME.timer stands above a file", "no such line")
	}
	a := &Adopted{source: "systemd", options: o}
	byName := make(map[string]*unit)
	for _, u := range all {
		byName[u.name] = u
	}
	for _, u := range all {
		base, is := strings.CutSuffix(u.name, ".timer")
		if !is {
			continue
		}
		title := document.Shorten(u.name, maxName) + ": "
		unit := cmp.Or(u.last("Timer.Unit"), base+".service")
		service := byName[unit]
		if service == nil || len(service.values["Service.ExecStart"]) == 0 {
			a.note(u.line, LeftOut, "%sexpected its service with an ExecStart in the same text, as systemctl cat %s %s prints it", title, u.name, document.Shorten(unit, maxName))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(u.values)) {
			value, known := strings.CutPrefix(name, "Timer.")
			switch {
			case known && strings.HasPrefix(value, "On") && !slices.Contains(times, name):
				a.note(u.lines[name], LeftOut, "%s%s counts from a start: write a rule such as every 15 minutes", title, value)
			case known && !slices.Contains(understood, name):
				a.note(u.lines[name], LeftOut, "%s%s", title, document.Shorten(value, maxName))
			}
		}
		for _, name := range times {
			for _, value := range u.values[name] {
				j := &job{line: u.lines[name], title: title, name: slug(base, `[^\w.-]+`), same: base, zone: o.Timezone}
				if j.times(strings.TrimPrefix(name, "Timer."), value) {
					j.readService(u, service)
					a.jobs = append(a.jobs, j)
				} else {
					a.note(j.line, Refused, "%s%s: expected a calendar or an interval that has a rule, found %s", title, strings.TrimPrefix(name, "Timer."), document.Found(value))
				}
			}
		}
	}
	return a.complete(), nil
}

// times are what has a model for each value, and understood is carried over, or says nothing about what runs.
var (
	times      = []string{"Timer.OnCalendar", "Timer.OnUnitActiveSec", "Timer.OnUnitInactiveSec"}
	understood = append([]string{
		"Timer.Unit", "Timer.Persistent", "Timer.RandomizedDelaySec", "Timer.FixedRandomDelay", "Service.ExecStart", "Service.Type", "Service.TimeoutStartSec",
		"Service.RuntimeMaxSec", "Unit.Description", "Unit.Documentation", "Unit.After", "Unit.Before", "Unit.Wants", "Unit.DefaultDependencies",
	}, times...)
	// works matches what decides whether and what a service runs, which no setting of a worker does.
	works = regexp.MustCompile(`^(Service\.(Exec.*|SuccessExitStatus|Restart)|Unit\..*)$`)
)

func (j *job) times(name, value string) (ok bool) {
	if name == "OnCalendar" {
		rule, zone, ok := schedule.FromCalendar(value)
		j.rule, j.zone = rule, cmp.Or(zone, j.zone)
		return ok
	}
	span, err := document.ParseDuration(value)
	j.rule = "@every " + document.FormatDuration(span)
	j.note(Differs, countsAnew+"last run")
	return err == nil
}

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
	for _, u := range []*unit{timer, service} {
		for _, name := range slices.Sorted(maps.Keys(u.values)) {
			section, setting, _ := strings.Cut(name, ".")
			setting = document.Shorten(setting, maxName)
			switch {
			case slices.Contains(understood, name) || section == "Install" || section == "Timer":
			case works.MatchString(name):
				j.note(LeftOut, "%s: write it into the command, or into the policy", setting)
			default:
				others = append(others, setting)
			}
		}
	}
	if len(timer.values["Timer.OnCalendar"]) > 1 {
		j.note(Differs, "each OnCalendar is a model of its own: two of them may run at one time")
	}
	if len(others) > 0 {
		j.note(Differs, "set it where the worker starts: %s", strings.Join(others, ", "))
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

// length reads a time span of systemd, in seconds if it has no unit. Infinity is none.
func (j *job) length(name, text string) time.Duration {
	span, err := document.ParseDuration(text)
	if err != nil && text != "" && text != "infinity" {
		j.note(Differs, "%s: expected a time span such as 1h 30min, found %s", name, document.Found(text))
	}
	return span
}
