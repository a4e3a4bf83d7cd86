// Package zonedata finds the zone data on a machine, and chooses between that and what the program brings.
package zonedata

import (
	"archive/zip"
	"os"
	"sync"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/zones"
)

// hostPaths are where Unix systems keep their zone data, as package time of Go has them.
var hostPaths = []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}

// Choose returns the data to be used: that of ZONEINFO, a directory or a zip archive, unless it is empty; else the newer of what the host has and of what
// the program brings. A ZONEINFO without zones is refused with a *document.Error.
func Choose(zoneinfo string) (*zones.Data, error) { return choose(zoneinfo, hostPaths) }

func choose(zoneinfo string, paths []string) (*zones.Data, error) {
	if zoneinfo != "" {
		return open(zoneinfo)
	}
	if host := firstOf(paths); host != nil && host.NewerThan(zones.Own().Release) {
		return host, nil
	}
	return zones.Own(), nil
}

// Here is the zone data that this program and its host have, as people call them.
var Here = sync.OnceValue(func() map[string]*zones.Data {
	here := map[string]*zones.Data{"this program": zones.InUse()}
	if host := firstOf(hostPaths); host != nil {
		here["this host"] = host
	}
	return here
})

func firstOf(paths []string) *zones.Data {
	for _, path := range paths {
		if data, err := open(path); err == nil {
			return data
		}
	}
	return nil
}

// open keeps an archive open as long as the program runs.
func open(path string) (*zones.Data, error) {
	files := os.DirFS(path)
	if archive, err := zip.OpenReader(path); err == nil {
		files = archive
	}
	data := zones.Open(files, path)
	if _, err := data.Load("Europe/London"); err == nil { // a part of a source would refuse the zones that it lacks
		return data, nil
	}
	return nil, document.Refuse("ZONEINFO", "a directory or a zip archive of zone data, such as /usr/share/zoneinfo", document.Found(path))
}
