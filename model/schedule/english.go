package schedule

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// readEnglish reads a schedule in English. Each word is taken by a rule below or is a filler, or the whole is refused.
func readEnglish(text string) (Reading, error) {
	rest, timezone := cutZone(text)
	words := readWords(cutAsked(respell(rest)))
	p := readPhrase(words)
	if p.reason == "" {
		return Reading{Rule: ruleOf(p.rules...), Timezone: timezone, Dtstart: p.start, Spread: p.spread}, nil
	}
	if lines, ok := readSeveral(words.words, false); ok && words.reason == "" {
		return Reading{Rule: ruleOf(lines...), Timezone: timezone}, nil
	}
	want := `RRULE such as "FREQ=DAILY;BYHOUR=6", cron, or English such as "` + phrasebook().Nearest(text) + `"`
	return Reading{}, refuseRule(want, document.Found(text)+" ("+p.reason+")")
}

// readSeveral reads "weekdays at 8:00 and weekends at 10:00". Each part says its days and its times.
func readSeveral(words []phraseWord, late bool) (lines []rrule.ROption, ok bool) {
	for i, word := range words {
		if word.kind != andWord {
			continue
		}
		first := readPhrase(phraseReader{words: words[:i]})
		if !first.isPart() || late && first.plain { // "Mondays at 9 PM, Tuesdays at 10"
			continue
		}
		late := late || first.late
		rest := readPhrase(phraseReader{words: words[i+1:]})
		more, ok := rest.rules, rest.isPart() && !(late && rest.plain)
		if !ok {
			more, ok = readSeveral(words[i+1:], late)
		}
		if lines = append(first.rules, more...); ok && len(lines) <= maxRules {
			return lines, true
		}
	}
	return nil, false
}

// isPart reports whether a phrase can stand beside another one: it says its days and its times, and nothing that may hold for both.
func (p *phrase) isPart() bool {
	return p.reason == "" && p.named && len(p.weekdays)+len(p.unit) > 0 && p.pace == "" && p.interval+p.count == 0 && p.start == "" && p.until.IsZero() &&
		len(p.ordinals)+len(p.dates)+len(p.exceptDays)+len(p.exceptMonths) == 0
}

func readPhrase(read phraseReader) phrase {
	p := phrase{phraseReader: read}
	p.words = slices.Clone(read.words)
	p.readTimes()
	p.parse()
	if p.reason == "" {
		p.rules = p.lines()
	}
	return p
}

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
		if rest = fields; phraseWords()[fields[i]] != nil || unclear[fields[i]] != "" || ordinal || slices.Contains(tellsMore, fields[i]) || strings.Trim(fields[i], "abcdefghijklmnopqrstuvwxyz'-") != "" {
			break
		}
	}
	if named {
		return text
	}
	return strings.Join(rest, " ")
}

var phraseExamples = []string{
	"every day at 6 AM and 4 PM", "every 2 hours", "every 30 minutes", "every hour", "twice per day at 6 AM and 4 PM", "every 2 days at 6:00",
	"every Monday, Wednesday and Friday at 9:00 and 17:30", "every weekday at 8:00", "every weekend at noon", "every 2 weeks on Monday at 9:00",
	"on the last Friday of the month at 18:00", "on the first Monday of every month at 9 AM", "on the 1st and 15th of the month at 06:00",
	"on the last day of the month at midnight", "every year on March 1 at noon", "every quarter on the 1st at 6:00",
	"every morning at 7:00", "every hour at :15", "every 30 minutes between 9:00 and 17:00", "every day at 6:00 until 1 March 2030",
	"every day at 6:00 starting 1 March 2030", "weekdays except Friday at 8:00", "every 2 hours on weekdays", "on the last weekday of the month at 18:00",
	"every day at 6:00 Berlin time",
}

var phrasebook = sync.OnceValue(func() *words.Phrasebook { return words.NewPhrasebook(phraseExamples) })
