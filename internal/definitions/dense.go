package definitions

import "bytes"

// dense returns the line of the first document with more separators than a document may have values; 0: none. Such a document would take a hundred
// times its size. Each document of a list, and each object, is counted by itself.
func dense(text []byte) (line int) {
	separators, begins, at := 0, 1, 0
	for written := range bytes.Lines(text) {
		at++
		item := bytes.TrimSpace(written)
		if len(item) > 0 && item[0] == '-' && (len(item) == 1 || item[1] == '-' || bytes.IndexByte(item, ':') > 0) {
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
