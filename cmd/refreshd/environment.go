package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model/words"
)

const variablePrefix = "REFRESHD_"

// variable is the environment variable of a flag.
func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// getenv is an environment variable; empty: it is not set.
func (a *app) getenv(name string) string {
	for _, set := range slices.Backward(a.environ) {
		if text, is := strings.CutPrefix(set, name+"="); is {
			return text
		}
	}
	return ""
}

// getSecret is an environment variable that no program of a worker in this process is to find.
func (a *app) getSecret(name string) string {
	a.secrets = append(a.secrets, name)
	return a.getenv(name)
}

// foreign are variables that are no settings: what Kubernetes puts into each container for a service whose name begins with refreshd, what a
// worker tells the program of --exec, which may be refreshd again, and what the tests ask for.
var foreign = regexp.MustCompile(`^((\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)` +
	`|UID|ATTEMPT_UID|ATTEMPT_NO|DEADLINE_AT|PLANNED_AT|PAYLOAD_\w+|LONG)$`)

// tellUnknownVariables warns of variables that look like settings and are none. It refuses none of them: an environment is shared, and much
// is put into it by others.
func (a *app) tellUnknownVariables(root *cobra.Command) {
	if !slices.ContainsFunc(a.environ, func(set string) bool { return strings.HasPrefix(set, variablePrefix) }) {
		return
	}
	var known []string
	for flag, is := range knownFlags(root) {
		if is || flag == "config" {
			known = append(known, strings.TrimPrefix(variable(flag), variablePrefix))
		}
	}
	slices.Sort(known)
	for _, set := range a.environ {
		variable, _, _ := strings.Cut(set, "=")
		name, ours := strings.CutPrefix(variable, variablePrefix)
		if !ours || slices.Contains(known, name) || foreign.MatchString(name) {
			continue
		}
		line := a.log.Warn().Str("variable", variable)
		if nearest := words.NearestWord(name, known); nearest != "" {
			line = line.Str("nearest", variablePrefix+nearest)
		}
		line.Msg("no setting has this name")
	}
}
