package store

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mostUnpacked is how many values every Lua can unpack: Redis holds 7,999, the embedded one 5,113.
const mostUnpacked = 1000

var (
	unpackPattern = regexp.MustCompile(`\bunpack\(`)
	chunksLoop    = regexp.MustCompile(`\bfor (\w+), (\w+) in chunks\((\w+)\) do\s+(?:redis\.call\([^\n]*)?$`)
	chunkSize     = regexp.MustCompile(`\blocal size = (\d+)\n`)
	endPattern    = regexp.MustCompile(`^math\.min\(#(\w+), (\d+)\)$`)
)

// unbound are the places of a script that unpack a list without a bound. A list has one when it is
//   - a chunk: the line before is "for first, last in chunks(list) do";
//   - cut: unpack(list, 1, math.min(#list, 1000)), or unpack(list, 1, 7);
//   - a table that is written down in one line, of values which are no calls, and to which nothing is added.
func unbound(body string) (places []string) {
	if size := chunkSize.FindStringSubmatch(body); size != nil {
		if n, _ := strconv.Atoi(size[1]); n > mostUnpacked || n%2 != 0 {
			places = append(places, fmt.Sprintf("chunks of %d, expected an even number up to %d", n, mostUnpacked))
		}
	}
	for _, at := range unpackPattern.FindAllStringIndex(body, -1) {
		args := splitArguments(body[at[1]:])
		if !chunked(args, body[:at[0]]) && !cut(args) && !writtenDown(args, body) {
			places = append(places, "unpack("+strings.Join(args, ", ")+") has no bound")
		}
	}
	return places
}

// chunked reports whether what stands before opens a loop over the chunks of this list.
func chunked(args []string, before string) bool {
	loop := chunksLoop.FindStringSubmatch(before)
	return loop != nil && slices.Equal(args, []string{loop[3], loop[1], loop[2]})
}

func cut(args []string) bool {
	if len(args) != 3 || args[1] != "1" {
		return false
	}
	n, err := strconv.Atoi(args[2])
	if end := endPattern.FindStringSubmatch(args[2]); end != nil && end[1] == args[0] {
		n, err = strconv.Atoi(end[2])
	}
	return err == nil && n <= mostUnpacked
}

func writtenDown(args []string, body string) bool {
	if len(args) != 1 {
		return false
	}
	name := regexp.QuoteMeta(args[0])
	return regexp.MustCompile(`\blocal `+name+` = \{[^(){}\n]*\}\n`).MatchString(body) &&
		!regexp.MustCompile(`\b`+name+`(\[.*\])? = [^{]|\binsert\(`+name+`\b`).MatchString(body)
}

// splitArguments splits a list at the commas that stand in no brackets and no quotes, and ends at the bracket that closes it.
func splitArguments(text string) []string {
	var parts []string
	depth, from, quoted := 0, 0, false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			if depth--; depth < 0 {
				return append(parts, strings.TrimSpace(text[from:i]))
			}
		case c == ',' && depth == 0:
			parts, from = append(parts, strings.TrimSpace(text[from:i])), i+1
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}
