package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionView is what the binary was built from.
type versionView struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	Commit  string `json:"commit"`  // empty: the build was not told
	Changed bool   `json:"changed"` // since the commit
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show what this binary was built from", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return a.print(v, [][2]any{
				{"refreshd", v.Version}, {"go", v.Go},
				{"commit", cmp.Or(v.short(), "unknown: go run, -buildvcs=false and linked work trees do not tell")},
				{"changed", mark(v.Changed, "since the commit")},
			})
		},
	}
}

// short is the commit for people, as long as Go writes it into a version; programs get all of it.
func (v versionView) short() string { return v.Commit[:min(12, len(v.Commit))] }

// line is all of it for a person, in one line.
func (v versionView) line() string {
	return v.Version + ", " + v.Go + ", commit " + cmp.Or(v.short(), "unknown") + mark(v.Changed, ", changed since")
}

// release is what a build calls the version: -ldflags "-X main.release=v1.2.3". Empty: what Go has found out about the checkout.
var release string

func readVersion() versionView {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info, release)
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
