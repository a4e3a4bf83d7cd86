package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/fingerprint"
)

const maxProblems, maxKinds = 10, 100 // of each kind that are printed, and of kinds

// printProblem prints a problem of one of many things, such as lines of a file, up to a limit for each kind.
func (a *app) printProblem(uid, text string) {
	kind, _, _ := strings.Cut(text, ", found ")
	kind = strings.TrimPrefix(string(fingerprint.Of(uid, "", kind[strings.LastIndex(kind, " line ")+1:])), "line #: ")
	if a.problems[kind] == 0 && len(a.problems) >= maxKinds {
		kind = "other problems"
	}
	if a.problems[kind]++; a.problems[kind] <= maxProblems {
		a.report(text)
	}
}

func (a *app) printProblemCounts() {
	for _, kind := range slices.Sorted(maps.Keys(a.problems)) {
		if more := a.problems[kind] - maxProblems; more > 0 {
			a.report(fmt.Sprintf("and %d more: %s", more, kind))
		}
	}
}
