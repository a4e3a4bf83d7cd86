package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

type table struct {
	place   string // of the table in a document
	work    string
	columns []column
}

type column struct {
	name string
	text func(all []result, of map[string][]result) string
}

func perSecond(r result) float64     { return r.perSecond }
func redisMicros(r result) float64   { return r.redisMicros }
func processMicros(r result) float64 { return r.processMicros }
func commands(r result) float64      { return r.commands }
func most(r result) float64          { return float64(r.most) }

func spreadOf(format string, number func(result) float64) func([]result, map[string][]result) string {
	return func(all []result, _ map[string][]result) string { return spread(all, format, number) }
}

func mostOf(number func(result) float64) func([]result, map[string][]result) string {
	return func(all []result, _ map[string][]result) string { return fmt.Sprint(slices.Max(sorted(all, number))) }
}

// against divides by what another contender has.
func against(name string, number func(result) float64) func([]result, map[string][]result) string {
	return func(all []result, of map[string][]result) string {
		return fmt.Sprintf("%.2f ×", median(all, number)/median(of[name], number))
	}
}

func cyclesTable(models int) table {
	return table{"bench", fmt.Sprintf("%d models", models), []column{
		{"cycles/s", spreadOf("%.0f", perSecond)},
		{"against bare pipelines", against("bare pipelines", perSecond)},
		{"against asynq", against("asynq", perSecond)},
		{"µs of Redis a cycle", spreadOf("%.1f", redisMicros)},
		{"µs of the processes a cycle", spreadOf("%.1f", processMicros)},
	}}
}

func (l load) table(models int) table {
	switch {
	case l.rate > 0 && l.hosts == 0:
		work := fmt.Sprintf("%d models, one after the other, %d a second", models, l.rate)
		return table{"bench of single starts", work, slices.Insert(paceColumns, 2, column{"against bare pipelines", against("bare pipelines", redisMicros)})}
	case l.rate > 0:
		work := fmt.Sprintf("%s, one after the other, %d a second, so that %.0f %% have to wait", l.limits(models), l.rate, 100*l.waiting(models))
		return table{"bench of single starts under limits", work, append(paceColumns, column{"most of a host at a time", mostOf(most)})}
	case l.now:
		work := l.allowed(models) + ", none due, and all asked for at once"
		return table{"bench of all asked for", work, append(l.shareColumns(), column{"µs of Redis an attempt", spreadOf("%.1f", redisMicros)})}
	default:
		return table{"bench of limits", l.allowed(models), append(l.shareColumns(),
			column{"against asynq", against("asynq", perSecond)},
			column{"ms until the last host begins", spreadOf("%.0f", func(r result) float64 { return ms(r.lastHost) })},
			column{"ms from an end to the next start", spreadOf("%.1f", func(r result) float64 { return r.refill.P50 })},
			column{"ms that a slow host delays the others", spreadOf("%.0f", func(r result) float64 { return ms(r.delay) })},
			column{"µs of Redis an attempt", spreadOf("%.1f", redisMicros)},
		)}
	}
}

func (l load) limits(models int) string {
	return fmt.Sprintf("%d models of %d hosts, %d of a host at a time, each for %s", models, l.hosts, l.atATime, l.work)
}

func (l load) allowed(models int) string {
	return fmt.Sprintf("%s, so that the limits allow %.0f a second", l.limits(models), l.ideal())
}

var paceColumns = []column{
	{"commands of Redis an attempt", spreadOf("%.1f", commands)},
	{"µs of Redis an attempt", spreadOf("%.1f", redisMicros)},
	{"ms late, half of them", spreadOf("%.1f", func(r result) float64 { return r.late.P50 })},
	{"ms late, 99 %", spreadOf("%.1f", func(r result) float64 { return r.late.P99 })},
}

func (l load) shareColumns() []column {
	return []column{
		{"attempts/s", spreadOf("%.0f", perSecond)},
		{"of what the limits allow", spreadOf("%.2f", func(r result) float64 { return r.perSecond / l.ideal() })},
		{"most of a host at a time", mostOf(most)},
	}
}

// render writes medians, and in brackets the least and the most.
func (t table) render(s *server, contenders []contender, results map[string][]result, rounds int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %d rounds in turns, %s, %s, %d processors of %s/%s. Medians (least to most).\n\n| | version |",
		t.work, rounds, s.version, runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	for _, column := range t.columns {
		fmt.Fprintf(&text, " %s |", column.name)
	}
	fmt.Fprintf(&text, "\n|%s\n", strings.Repeat("---|", 2+len(t.columns)))
	for _, c := range contenders {
		fmt.Fprintf(&text, "| %s | %s |", c.name, c.version)
		for _, column := range t.columns {
			fmt.Fprintf(&text, " %s |", column.text(results[c.name], results))
		}
		text.WriteString("\n")
	}
	return text.String()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func sorted(all []result, number func(result) float64) []float64 {
	numbers := make([]float64, len(all))
	for i, one := range all {
		numbers[i] = number(one)
	}
	slices.Sort(numbers)
	return numbers
}

func median(all []result, number func(result) float64) float64 {
	numbers := sorted(all, number)
	return (numbers[(len(numbers)-1)/2] + numbers[len(numbers)/2]) / 2
}

func spread(all []result, format string, number func(result) float64) string {
	numbers := sorted(all, number)
	return fmt.Sprintf(format+" ("+format+" to "+format+")", median(all, number), numbers[0], numbers[len(numbers)-1])
}

// replace puts the rendered table in the place of the one that a document holds.
func (t table) replace(path, rendered string) error {
	begin, end := "<!-- "+t.place+": begin -->\n", "<!-- "+t.place+": end -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s: expected the lines %q and %q, found none", path, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(path, []byte(before+begin+rendered+end+after), 0o600)
}

// moduleVersion is the version of a dependency that this program was built with.
func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}
