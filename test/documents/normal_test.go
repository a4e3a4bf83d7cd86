package documents

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// streamID is the id of an entry of a stream, which Redis makes of its own clock.
	streamID = regexp.MustCompile(`\b(1\d{12})-\d+\b`)
	numbered = regexp.MustCompile(`^ *\d+\) `)
)

// inOrder sorts the fields of a hash, which Redis tells in any order.
func inOrder(command string, output []string) []string {
	if !strings.Contains(command, "HGETALL") {
		return output
	}
	var fields []string
	for pair := range slices.Chunk(slices.Clone(output), 2) {
		for i := range pair {
			pair[i] = numbered.ReplaceAllString(pair[i], "")
		}
		fields = append(fields, strings.Join(pair, " "))
	}
	slices.Sort(fields)
	return fields
}
