package chart

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

var renderers = map[string]func(io.Writer, ...Chart) error{
	"txt": Table, "mmd": Mermaid, "svg": SVG, "jsonl": JSON,
}

// TestAChartLooksAsItDidBefore compares with files that somebody has looked at; -update writes them.
func TestAChartLooksAsItDidBefore(t *testing.T) {
	for name, charts := range charts(t) {
		for extension, render := range renderers {
			t.Run(name+"."+extension, func(t *testing.T) {
				var got bytes.Buffer
				if err := render(&got, charts...); err != nil {
					t.Fatal(err)
				}
				compare(t, filepath.Join("testdata", name+"."+extension), got.Bytes())
			})
		}
	}
}

func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
