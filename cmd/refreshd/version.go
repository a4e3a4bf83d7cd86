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
	Commit  string `json:"commit"`
	Changed bool   `json:"changed"` // since the commit
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show what this binary was built from", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return a.print(v, [][2]string{
				{"refreshd", v.Version}, {"go", v.Go}, {"commit", v.Commit}, {"changed", mark(v.Changed, "since the commit")},
			})
		},
	}
}

// line is all of it for a person, in one line.
func (v versionView) line() string {
	text := v.Version + ", " + v.Go
	if v.Commit != "" {
		text += ", commit " + v.Commit
	}
	return text + mark(v.Changed, ", changed since")
}

// release is what a build calls the version: -ldflags "-X main.release=v1.2.3". Empty: what Go has found out about the checkout.
var release string

func readVersion() versionView {
	v := versionView{Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		v.Version = info.Main.Version
	}
	if v.Version = cmp.Or(release, v.Version, "(devel)"); !ok {
		return v
	}
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
