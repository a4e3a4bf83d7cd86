package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// The lines between which a document holds the table.
const (
	tableBegin = "<!-- bench: begin -->\n"
	tableEnd   = "<!-- bench: end -->\n"
)

// render writes medians, and in brackets the least and the most.
func render(s *server, contenders []contender, results map[string][]result, rounds, models int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d models, %d rounds in turns, %s, %s, %d processors of %s/%s. Medians (least to most).\n\n",
		models, rounds, s.version, runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	text.WriteString("| | version | cycles/s | against asynq | µs of Redis a cycle |\n|---|---|---|---|---|\n")
	perSecond := func(r result) float64 { return r.perSecond }
	peer := median(results["asynq"], perSecond)
	for _, c := range contenders {
		all := results[c.name]
		fmt.Fprintf(&text, "| %s | %s | %s | %.1f × | %s |\n", c.name, c.version, spread(all, "%.0f", perSecond),
			median(all, perSecond)/peer, spread(all, "%.1f", func(r result) float64 { return r.redisMicros }))
	}
	return text.String()
}

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

// replaceTable puts a table in the place of the one that a document holds.
func replaceTable(path, table string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return fmt.Errorf("%s: expected the lines %q and %q, found none", path, strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return os.WriteFile(path, []byte(before+tableBegin+table+tableEnd+after), 0o600)
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
