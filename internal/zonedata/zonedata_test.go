package zonedata

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/zones"
)

const own = "../../model/zones/zones.zip" // an archive of the own release

// host unpacks nothing but London, as the data of a release; "": it names none.
func host(t *testing.T, release string) string {
	t.Helper()
	directory := t.TempDir()
	check.Must(t, os.Mkdir(filepath.Join(directory, "Europe"), 0o700))
	archive := check.Got(zip.OpenReader(own))(t)
	t.Cleanup(func() { _ = archive.Close() })
	london := check.Got(fs.ReadFile(archive, "Europe/London"))(t)
	check.Must(t, os.WriteFile(filepath.Join(directory, "Europe/London"), london, 0o600))
	if release != "" {
		check.Must(t, os.WriteFile(filepath.Join(directory, "+VERSION"), []byte(release+"\n"), 0o600))
	}
	return directory
}

func TestTheNewerDataServesUnlessZONEINFONamesAnother(t *testing.T) {
	older, newer, nameless, empty, release := host(t, "2025b"), host(t, "2099a"), host(t, ""), t.TempDir(), zones.Own().Release
	for name, test := range map[string]struct {
		zoneinfo string
		hosts    []string
		want     zones.Origin
	}{
		"a host without zones":       {"", []string{empty, "/nowhere"}, zones.Origin{Release: release, Source: zones.SourceOwn}},
		"an older host":              {"", []string{empty, older, newer}, zones.Origin{Release: release, Source: zones.SourceOwn}},
		"a host that names none":     {"", []string{nameless}, zones.Origin{Release: release, Source: zones.SourceOwn}},
		"a host of the same release": {"", []string{host(t, release)}, zones.Origin{Release: release, Source: zones.SourceOwn}},
		"a newer host":               {"", []string{newer}, zones.Origin{Release: "2099a", Source: newer}},
		"ZONEINFO, a directory":      {older, []string{newer}, zones.Origin{Release: "2025b", Source: older}},
		"ZONEINFO without a release": {nameless, []string{newer}, zones.Origin{Source: nameless}},
		"ZONEINFO, an archive":       {own, []string{newer}, zones.Origin{Release: release, Source: own}},
	} {
		data, err := choose(test.zoneinfo, test.hosts)
		if err != nil || data.Origin != test.want {
			t.Errorf("%s: expected %s, found %v, %v", name, test.want, data, err)
		}
	}
	for _, zoneinfo := range []string{empty, "/nowhere", "zonedata.go"} {
		if data, err := choose(zoneinfo, nil); err == nil {
			t.Errorf("ZONEINFO=%s: expected a refusal, as there are no zones, found %s", zoneinfo, data)
		}
	}
}
