package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionTellsTheCommitAndWhetherItWasChangedWhereTheBuildKnows(t *testing.T) {
	const commit = "aab99e6f57bc3362dfa64e0f6005f96f1c21d416"
	stamped := func(version, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: version}, Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified},
		}}
	}
	const pseudo = "v0.0.0-20261123154324-aab99e6f57bc"
	for name, test := range map[string]struct {
		info    *debug.BuildInfo
		release string
		want    versionView
		line    string
	}{
		"a clone": {stamped(pseudo, "false"), "", versionView{pseudo, "go1.26.1", commit, false},
			pseudo + ", go1.26.1, commit aab99e6f57bc"},
		"a clone with changes": {stamped(pseudo+"+dirty", "true"), "", versionView{pseudo + "+dirty", "go1.26.1", commit, true},
			pseudo + "+dirty, go1.26.1, commit aab99e6f57bc, changed since"},
		"a release": {stamped(pseudo, "false"), "v1.2.3", versionView{"v1.2.3", "go1.26.1", commit, false}, "v1.2.3, go1.26.1, commit aab99e6f57bc"},
		"go run": {&debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: "(devel)"}}, "", versionView{"(devel)", "go1.26.1", "", false},
			"(devel), go1.26.1, commit unknown"},
		"no module": {&debug.BuildInfo{GoVersion: "go1.26.1"}, "", versionView{"(devel)", "go1.26.1", "", false}, "(devel), go1.26.1, commit unknown"},
	} {
		if v := versionOf(test.info, test.release); v != test.want || v.line() != test.line {
			t.Errorf("%s: expected %+v, %s, found %+v, %s", name, test.want, test.line, v, v.line())
		}
	}
}

func TestVersionSaysSoWhereTheBuildWasNotToldTheCommit(t *testing.T) {
	if readVersion().Commit != "" {
		t.Skip("this test was built with a commit")
	}
	c := &console{t: t}
	expectContains(t, c.do("version"), "commit    unknown: ")
}
