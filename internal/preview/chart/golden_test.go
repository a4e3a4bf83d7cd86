package chart

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

var renderers = map[string]func(io.Writer, ...Chart) error{
	"txt": Table, "svg": SVG,
}

// TestAChartLooksAsItDidBefore compares with files that somebody has looked at; -update writes them.
func TestAChartLooksAsItDidBefore(t *testing.T) {
	for name, charts := range charts(t) {
		for extension, render := range renderers {
			t.Run(name+"."+extension, func(t *testing.T) {
				var got bytes.Buffer
				must(t, render(&got, charts...))
				compare(t, filepath.Join("testdata", name+"."+extension), got.Bytes())
			})
		}
	}
}

func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	equal(t, string(want), string(got))
}
