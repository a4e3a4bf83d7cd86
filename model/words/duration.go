package words

import (
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

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
