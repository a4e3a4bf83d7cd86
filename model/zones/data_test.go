package zones_test

import (
	"archive/zip"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/zones"
)

func TestTheOwnDataIsOfItsRelease(t *testing.T) {
	own := zones.Own()
	if own.Release < "2026f" || !regexp.MustCompile(`^\d{4}[a-z]+$`).MatchString(own.Release) || own.String() != own.Release+" of refreshd" {
		t.Errorf("expected 2026f or newer, found %q, %s", own.Release, own)
	}
}

// TestTheOwnDataHasEachNameOfGo compares with the names that Go embeds: each is a zone or a link of ours.
func TestTheOwnDataHasEachNameOfGo(t *testing.T) {
	root := strings.TrimSpace(string(check.Got(exec.Command("go", "env", "GOROOT").Output())(t))) // runtime.GOROOT is empty with -trimpath
	archive := check.Got(zip.OpenReader(filepath.Join(root, "lib/time/zoneinfo.zip")))(t)
	t.Cleanup(func() { _ = archive.Close() })
	names := 0
	for _, file := range archive.File {
		if _, err := zones.Own().Load(file.Name); err != nil {
			t.Error(err)
		}
		names++
	}
	if names < 500 {
		t.Errorf("expected some 600 names, found %d", names)
	}
}

func TestTheOwnDataKnowsTheChangesOf2026(t *testing.T) {
	at := time.Date(2026, 12, 1, 18, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{
		"America/Vancouver": "-0700", "Canada/Pacific": "-0700", "America/Edmonton": "-0600", "America/Inuvik": "-0600", "America/Winnipeg": "-0500",
		"America/Havana": "-0400", "Africa/Casablanca": "+0000", "Europe/London": "+0000", "Europe/Kiev": "+0200",
	} {
		zone := check.Got(zones.Own().Load(name))(t)
		if got := at.In(zone).Format("-0700"); got != want || zone.String() != name {
			t.Errorf("%s: expected %s, found %s of %s", name, want, got, zone)
		}
	}
}

// TestAMissingNameIsTakenFromTheSameSource builds a source of old data in which Vancouver has the offset of Berlin, and no old names.
func TestAMissingNameIsTakenFromTheSameSource(t *testing.T) {
	archive := check.Got(zip.OpenReader("zones.zip"))(t)
	t.Cleanup(func() { _ = archive.Close() })
	berlin := &fstest.MapFile{Data: check.Got(fs.ReadFile(archive, "Europe/Berlin"))(t)}
	for name, files := range map[string]fstest.MapFS{
		"links of its own": {"America/Vancouver": berlin, "tzdata.zi": {Data: []byte("# version 2099a\nL America/Vancouver Canada/Pacific\n")}},
		"an older release": {"America/Vancouver": berlin, "tzdata.zi": {Data: []byte("# version 2020a\n")}},
		"no release":       {"America/Vancouver": berlin},
		"an old name only": {"Canada/Pacific": berlin, "+VERSION": {Data: []byte("2020a\n")}},
	} {
		data := zones.Open(files, "x")
		for _, known := range []string{"America/Vancouver", "Canada/Pacific"} {
			zone := check.Got(data.Load(known))(t)
			if _, offset := time.Unix(0, 0).In(zone).Zone(); offset != 3600 || zone.String() != known {
				t.Errorf("%s: expected %s of this source, found %s, %d", name, known, zone, offset)
			}
		}
		for _, unknown := range []string{"Europe/Paris", "../data.go", "", "tzdata.zi", "America"} {
			if zone, err := data.Load(unknown); err == nil {
				t.Errorf("%s: expected no zone %q, as this source has none, found %s", name, unknown, zone)
			}
		}
	}
}

func TestASourceTellsItsRelease(t *testing.T) {
	for want, files := range map[string]fstest.MapFS{
		"2026f":       {"tzdata.zi": {Data: []byte("# version 2026f\n# redo posix_only\nL A B\n")}},
		"2025b":       {"+VERSION": {Data: []byte("2025b\n")}},
		"2026f-2-gab": {"tzdata.zi": {Data: []byte("# version 2026f-2-gab\n")}, "+VERSION": {Data: []byte("2020a")}},
		"":            {"tzdata.zi": {Data: []byte("# version unknown\n")}},
	} {
		data := zones.Open(files, "x")
		if data.Release != want || !zones.Own().NewerThan("") || zones.Own().NewerThan(zones.Own().Release) || data.NewerThan(zones.Own().Release) != (want == "2026f-2-gab") {
			t.Errorf("expected %q, found %q", want, data.Release)
		}
	}
}
