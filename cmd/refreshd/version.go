package main

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/zones"
)

type versionView struct {
	Version string       `json:"version"`
	Go      string       `json:"go"`
	Commit  string       `json:"commit"`  // empty: unknown
	Changed bool         `json:"changed"` // since the commit
	Zones   zones.Origin `json:"zone_data"`
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show what this binary was built from", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return a.print(v, [][2]any{
				{"refreshd", v.Version}, {"go", v.Go},
				{"commit", cmp.Or(v.short(), "unknown: go run, -buildvcs=false and linked work trees do not say")},
				{"changed", mark(v.Changed, "since the commit")}, {"zones", v.Zones.String()},
			})
		},
	}
}

// short is the commit as people see it; programs get all of it.
func (v versionView) short() string { return v.Commit[:min(12, len(v.Commit))] }

func (v versionView) line() string {
	return v.Version + ", " + v.Go + ", commit " + cmp.Or(v.short(), "unknown") + mark(v.Changed, ", changed since")
}

// release is the version of a build: -ldflags "-X main.release=v1.2.3". Empty: Go's own version of the checkout.
var release string

func readVersion() versionView {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	v := versionOf(info, release)
	v.Zones = zones.InUse().Origin
	return v
}

func versionOf(info *debug.BuildInfo, release string) versionView {
	v := versionView{Version: cmp.Or(release, info.Main.Version, "(devel)"), Go: info.GoVersion}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Commit = setting.Value
		case "vcs.modified":
			v.Changed = setting.Value == "true"
		}
	}
	return v
}

// A shell offers few values, and soon: somebody waits with the finger on a key.
const mostOffered = 50

var completeWithin = 500 * time.Millisecond // tests wait for longer

// offerValues lets shells complete the values of a command and of those below it.
func (a *app) offerValues(command *cobra.Command) {
	known := func(values []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	policyOrFile := a.offer(operate.PoliciesLike, cobra.ShellCompDirectiveDefault)
	for flag, offer := range map[string]cobra.CompletionFunc{
		"status": known(model.SelectStatuses), "role": known(roleNames()), "format": known(definitions.Formats), "log-level": known(logLevels),
		"payload": known(operate.PayloadPlaces),
		"output": func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return outputsOf(command), cobra.ShellCompDirectiveNoFileComp
		},
		"policy": policyOrFile, "against": policyOrFile,
	} {
		if command.Flags().Lookup(flag) != nil || command.PersistentFlags().Lookup(flag) != nil {
			_ = command.RegisterFlagCompletionFunc(flag, offer) // the flag is there
		}
	}
	_, arguments, _ := strings.Cut(command.Use, " ")
	several := strings.Contains(arguments, "...") || strings.Contains(arguments, " ")
	offer := func(find finder, otherwise cobra.ShellCompDirective) cobra.CompletionFunc {
		return func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && !several {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.offer(find, otherwise)(command, args, begun)
		}
	}
	switch parent := command.Parent(); {
	case strings.HasPrefix(arguments, "UID"):
		command.ValidArgsFunction = offer(operate.UIDsLike, cobra.ShellCompDirectiveNoFileComp)
	case parent != nil && parent.Name() == "policy" && arguments != "":
		command.ValidArgsFunction = offer(operate.PoliciesLike, cobra.ShellCompDirectiveDefault)
	}
	for _, child := range command.Commands() {
		a.offerValues(child)
	}
}

// finder finds names that begin with a text.
type finder func(ctx context.Context, o operate.Operator, begun string) ([]string, error)

// offer completes from the store. It reports no errors: they would spoil the line of the shell.
func (a *app) offer(find finder, otherwise cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(command *cobra.Command, given []string, begun string) (found []string, _ cobra.ShellCompDirective) {
		if a.settle(command) != nil {
			return nil, otherwise
		}
		a.log = zerolog.Nop()
		redisLog.Store(&a.log)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(command.Context()), completeWithin)
		defer cancel()
		_ = a.withOperator(ctx, func(o operate.Operator) (err error) {
			found, err = find(ctx, o, begun)
			return err
		})
		found = slices.DeleteFunc(found, func(offered string) bool {
			name, _, _ := strings.Cut(offered, "\t")
			return slices.Contains(given, name)
		})
		slices.Sort(found)
		return found[:min(len(found), mostOffered)], otherwise
	}
}
