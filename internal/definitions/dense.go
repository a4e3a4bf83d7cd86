package definitions

import (
	"bytes"
	"fmt"
)

var errDense = fmt.Errorf("expected at most %d values, found more", maxYAMLValues)

// dense finds the first document in a text, by its line, that has more separators than a document may have values; 0: there is none. It is refused
// before its values take a hundred times its size. Each document of a list, and each object, is counted by itself.
func dense(text []byte) (line int) {
	item, separators, begins, first, at := []byte(nil), 0, 1, true, 0
	for written := range bytes.Lines(text) {
		at++
		trimmed := bytes.TrimSpace(written)
		switch {
		case bytes.HasPrefix(written, []byte("---")):
			item, separators, begins, first = nil, 0, at, true
			continue
		case first && len(trimmed) > 0 && trimmed[0] != '#':
			if first = false; trimmed[0] == '-' {
				item = written[:bytes.IndexByte(written, '-')+1]
			}
		}
		if item != nil && bytes.HasPrefix(written, item) {
			separators, begins = 0, at
		}
		for object := range bytes.SplitAfterSeq(written, []byte("{")) {
			if separators += bytes.Count(object, []byte(",")); separators > maxYAMLValues {
				return begins
			}
			if bytes.HasSuffix(object, []byte("{")) {
				separators = 0
			}
		}
		separators++
	}
	return 0
}
