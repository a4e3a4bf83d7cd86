package scripts

import (
	"regexp"
	"strconv"
	"strings"
)

// Header is the comment that a script opens with.
type Header struct {
	Purpose, Returns string
	Entries          []Entry
	Body             string // the rest of the script
}

// Entry is what a header says about an entry of KEYS or ARGV.
type Entry struct {
	Table string
	First int  // its number
	Open  bool // "KEYS[10..]": this one and all behind it
	Text  string
}

// Key is one key of a header: "<queue>:due zset ZADD ZREM".
type Key struct {
	Pattern, Type string
	// Commands are the commands on it, upper case. LMOVE-to is LMOVE with the key as its target.
	Commands []string
	Place    int  // of its entry in KEYS, which may hold one of several
	Item     bool // each item brings one
}

var (
	entryPattern = regexp.MustCompile(`^(KEYS|ARGV)\[(\d+)(\.\.)?\] ?(.*)$`)
	keyPattern   = regexp.MustCompile(`(<queue>\S*) (list|hash|zset|set|stream|string)((?: [A-Z]+(?:-to)?)*)\b`)
)

// ReadHeader reads the header of a script. A line that begins with "--   " continues the entry before it.
func ReadHeader(script string) Header {
	var header Header
	entry := &header.Purpose
	for line := range strings.Lines(script) {
		comment, is := strings.CutPrefix(strings.TrimRight(line, "\n"), "--")
		found := entryPattern.FindStringSubmatch(strings.TrimSpace(comment))
		returns, last := strings.CutPrefix(comment, " Returns ")
		switch {
		case is && found != nil:
			first, _ := strconv.Atoi(found[2])
			header.Entries = append(header.Entries, Entry{found[1], first, found[3] != "", found[4]})
			entry = &header.Entries[len(header.Entries)-1].Text
		case is && last:
			header.Returns, entry = returns, &header.Returns
		case is && (entry == &header.Purpose || strings.HasPrefix(comment, "   ")):
			*entry = strings.TrimSpace(*entry + " " + strings.TrimSpace(comment))
		default:
			header.Body = script
			return header
		}
		script = script[len(line):]
	}
	return header
}

// Keys are all keys of the header, in its order.
func (h Header) Keys() (keys []Key) {
	for _, entry := range h.Entries {
		if entry.Table == "KEYS" {
			keys = append(keys, entry.Keys()...)
		}
	}
	return keys
}

// Keys are the keys that an entry names.
func (e Entry) Keys() (keys []Key) {
	for _, found := range keyPattern.FindAllStringSubmatch(e.Text, -1) {
		keys = append(keys, Key{found[1], found[2], strings.Fields(found[3]), e.First, e.Open})
	}
	return keys
}
