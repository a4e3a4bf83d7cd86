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
	for _, u := range all {
		base, is := strings.CutSuffix(u.name, ".timer")
		if !is {
			continue
		}
		runs := cmp.Or(u.last("Timer.Unit"), base+".service")
		at := slices.IndexFunc(all, func(other *unit) bool { return other.name == runs && other.values["Service.ExecStart"] != nil })
		if at < 0 {
			a.note(u.line, LeftOut, "%sexpected its service with an ExecStart in the same text, as systemctl cat %s %s prints it", u.title(), u.name, document.Shorten(runs, maxName))
			continue
		}
		others := append(a.leaveOut(u), a.leaveOut(all[at])...)
		for _, name := range []string{"Timer.OnCalendar", "Timer.OnUnitActiveSec", "Timer.OnUnitInactiveSec"} {
			for _, value := range u.values[name] {
				j := &job{line: u.lines[name], title: u.title(), name: slug(base, `[^\w.-]+`), same: base, zone: o.Timezone}
				if len(others) > 0 {
					j.note(Differs, "set it where the worker starts: %s", strings.Join(others, ", "))
				}
				j.readService(u, all[at])
				span, err := document.ParseDuration(value)
				rule, zone, ok := schedule.FromCalendar(value)
				j.rule, j.zone = rule, cmp.Or(zone, o.Timezone)
				if name != "Timer.OnCalendar" {
					j.rule, ok = "@every "+document.FormatDuration(span), err == nil
					j.note(Differs, countsAnew+"last run")
				}
				if ok {
					a.jobs = append(a.jobs, j)
					continue
				}
				a.note(j.line, Refused, "%s%s: expected a calendar or a time span that has a rule, found %s", j.title, strings.TrimPrefix(name, "Timer."), document.Found(value))
			}
		}
	}
	return a.complete(), nil
}

func (u *unit) title() string { return document.Shorten(u.name, maxName) + ": " }

// setting says what becomes of the settings whose names match. text is empty: they are carried over, or say nothing about what runs.
type setting struct {
	name *regexp.Regexp
	text string
}

// settings are in order: the first that matches counts. All others are for the worker.
var settings = []setting{
	{regexp.MustCompile(`^Install\.|^Timer\.(OnCalendar|OnUnitActiveSec|OnUnitInactiveSec|Unit|Persistent|RandomizedDelaySec|FixedRandomDelay)$|` +
		`^Service\.(ExecStart|Type|TimeoutStartSec|RuntimeMaxSec)$|^Unit\.(Description|Documentation|After|Before|Wants|DefaultDependencies)$`), ""},
	{regexp.MustCompile(`^Timer\.On`), " counts from a start: write a rule such as every 15 minutes"},
	{regexp.MustCompile(`^Timer\.`), " is not carried over"},
	{regexp.MustCompile(`^Unit\.|^Service\.(Exec.*|SuccessExitStatus|Restart)$`), ": write it into the command, or into the policy"},
}

// leaveOut notes the settings of a unit that nothing here corresponds to, and returns those that are for the worker.
func (a *Adopted) leaveOut(u *unit) (others []string) {
	for _, name := range slices.Sorted(maps.Keys(u.values)) {
		_, shown, _ := strings.Cut(document.Shorten(name, maxName), ".")
		is := slices.IndexFunc(settings, func(one setting) bool { return one.name.MatchString(name) })
		if is < 0 {
			others = append(others, shown)
		} else if settings[is].text != "" {
			a.note(u.lines[name], LeftOut, "%s%s%s", u.title(), shown, settings[is].text)
		}
	}
	return others
}

// readService takes the command, and what the policy says.
func (j *job) readService(timer, service *unit) {
	var commands []string
	for _, command := range service.values["Service.ExecStart"] {
		plain := strings.TrimLeft(command, "-@+!:")
		if plain != command || strings.ContainsAny(command, "%$&;|<>()*?[]#~`{}\\") {
			j.note(Differs, "ExecStart: to sh letters such as $ and * mean something else than to systemd, and a %% or a prefix such as - nothing: check the command")
		}
		commands = append(commands, plain)
	}
	j.payload = map[string]any{"command": strings.Join(commands, " && ")}
	if len(timer.values["Timer.OnCalendar"]) > 1 {
		j.note(Differs, "each OnCalendar is a model of its own: two of them may run at one time")
	}
	if !slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(timer.last("Timer.Persistent"))) {
		j.note(Differs, "it is not Persistent, and a model runs once for what was missed: write misfire: skip into the policy")
	}
	limit := "Service.RuntimeMaxSec"
	if service.last("Service.Type") == "oneshot" {
		limit = "Service.TimeoutStartSec"
	}
	j.spread, j.timeout = j.length(timer, "Timer.RandomizedDelaySec"), j.length(service, limit)
	if j.timeout == 0 {
		j.takeTimeout(j.payload["command"].(string))
	}
}

// length reads a time span, in seconds if it has no unit. Infinity is none.
func (j *job) length(u *unit, name string) time.Duration {
	text := u.last(name)
	span, err := document.ParseDuration(text)
	if err != nil && text != "infinity" {
		j.note(Differs, "%s: expected a time span such as 1h 30min, found %s", name, document.Found(text))
	}
	return span
}
