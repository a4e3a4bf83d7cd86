package schedule

import (
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/words"
)

var (
	asks  = regexp.MustCompile(`^(?:please )?(?:refresh(?:es)?|(?:run|execute|update|sync|synchronize|import|start|trigger|reload|rebuild|fetch|load|pull|schedule|repeat)s?):? `)
	asked = regexp.MustCompile(`^(?:(?:is|are|gets?|(?:should|must|will)(?: be)?|(?:has|needs) to be) )?(?:(?:refresh|trigger|execut|updat|sync|import|start|reload|fetch|load|pull|schedul)(?:e?d|e?s)|rebuilt|runs?) `)
	// tellsMore are words that are no part of a name.
	tellsMore = strings.Fields("no not never nothing none only if unless when or but except without less more than some most few half almost about please until before after least maybe hardly don't")
)

// cutAsked cuts off who asks for what: "please run the sales report", "the model is refreshed", "schedule:".
func cutAsked(text string) string {
	rest := asks.ReplaceAllString(text, "")
	named := cutName(rest)
	days, name, last := strings.Cut(text, " refresh ") // "every Monday at 8, refresh the report"
	switch {
	case rest != text:
		return named
	case last:
		return days + " " + cutName(name)
	case named != text && asked.MatchString(named):
		return asked.ReplaceAllString(named, "")
	}
	return text
}

// cutName cuts off the name of what is refreshed: a noun that is known, with up to three words before it that say nothing of times.
func cutName(text string) string {
	fields := strings.Fields(text)
	rest := words.CutSubject(fields)
	named := len(rest) == len(fields) && len(fields) > 0 && slices.Contains(strings.Fields("the our my this all"), fields[0])
	for i := 1; named && i < min(5, len(fields)); i++ {
		if rest = words.CutSubject(fields[i:]); i > 1 && len(rest) < len(fields[i:]) {
			return strings.Join(rest, " ")
		}
		_, ordinal := words.Ordinal(fields[i])
		if rest = fields; phraseWords[fields[i]] != nil || unclear[fields[i]] != "" || ordinal || slices.Contains(tellsMore, fields[i]) || strings.Trim(fields[i], "abcdefghijklmnopqrstuvwxyz'-") != "" {
			break
		}
	}
	if named {
		return text
	}
	return strings.Join(rest, " ")
}
