package words

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Distance tells a person how far an instant is from now.
func Distance(at, now time.Time) string {
	away := at.Sub(now)
	switch {
	case away.Abs() < time.Second:
		return "now"
	case away < 0:
		return Roughly(-away) + " ago"
	default:
		return "in " + Roughly(away)
	}
}

// Roughly renders a length of time by its two largest units.
func Roughly(length time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	text := ""
	for _, unit := range units {
		count := length / unit.size
		length %= unit.size
		switch {
		case text != "" && count > 0:
			return fmt.Sprintf("%s %d%s", text, count, unit.name)
		case text != "":
			return text
		case count > 0:
			text = fmt.Sprintf("%d%s", count, unit.name)
		}
	}
	return cmp.Or(text, "0s")
}

// DurationPattern matches, in a regular expression that ignores case, what ParseDuration may read.
var DurationPattern = amountPattern + `[a-z]+(?: and a half)?(?:(?:, and |, | and | )?` + amountPattern + `[a-z]+)*|p[\dtwdhms.]*\d[\dtwdhms.]*`

var amountPattern = `(?:\d+(?:\.\d+)? ?|(?:half an?|half one|` + NumberPattern + `) )`

// ParseDuration reads what document.ParseDuration reads, and numbers in words: "one week", "half an hour", "an hour and a half".
func ParseDuration(text string) (time.Duration, error) {
	lower, half := strings.CutSuffix(strings.ToLower(text), " and a half")
	words := strings.Fields(lower)
	for i, word := range words {
		if n, isNumber := Number(word); isNumber {
			words[i] = strconv.Itoa(n)
		}
	}
	if half && len(words) > 0 {
		words[0] += ".5"
	}
	if len(words) > 2 && words[0] == "half" && words[1] == "1" {
		words = append([]string{"0.5"}, words[2:]...)
	}
	return document.ParseDuration(strings.Join(words, " "))
}
