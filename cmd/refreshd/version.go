package main

import (
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

func readVersion() versionView {
	v := versionView{Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
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
