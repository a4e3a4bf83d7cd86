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

// inOrder sorts the fields of a hash, which Redis returns in any order.
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

// varying are the parts that differ between runs: instants, lengths of time, uids, and numbers of Redis.
var varying = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{streamID, "ID"},
	{regexp.MustCompile(`\b[a-z2-7]{26}\b`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|µs|s|m|h|d) ?)+`), "LENGTH"},
	{regexp.MustCompile(`\b1\d{12}\b`), "MS"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

func normal(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.instead)
	}
	return strings.TrimSpace(text)
}
