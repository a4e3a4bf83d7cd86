package schedule

import (
	"regexp"
	"slices"
	"strings"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// readEnglish reads a schedule in English. Each word is taken by a rule below or is a filler, or the whole is refused.
func readEnglish(text string) (ParsedRule, error) {
	rest, timezone := cutZone(text)
	read := readWords(respell(rest))
	p := readPhrase(read)
	if p.reason == "" {
		r := ParsedRule{Rule: ruleOf(p.rules...), Timezone: timezone, Spread: p.spread}
		if !p.start.IsZero() {
			r.Dtstart = p.start.Format(dtstartLayout)
		}
		return r, nil
	}
	if lines, ok := readSeveral(read.words, nil); ok && read.reason == "" {
		return ParsedRule{Rule: ruleOf(lines...), Timezone: timezone}, nil
	}
	want := `RRULE such as "FREQ=DAILY;BYHOUR=6", cron, or English such as "` + words.Nearest(text, phraseExamples) + `"`
	return ParsedRule{}, refuseRule(want, document.Found(text)+" ("+p.reason+")")
}

// readSeveral reads "weekdays at 8:00 and weekends at 10:00". Each part says its days and its times.
func readSeveral(words []phraseWord, before *phrase) (lines []rrule.ROption, ok bool) {
	kinds := kindsOf(words)
	for i := range words {
		left, right := strings.TrimRight(kinds[:i], "_a"+joiners), strings.TrimLeft(kinds[i:], "_aE@"+joiners)
		if !strings.Contains(joiners, kinds[i:i+1]) || left == "" || right == "" || !between(left[len(left)-1], right[0]) {
			continue
		}
		first := readPhrase(phraseReader{words: words[:i]})
		if !first.isPart() || !first.follows(before) {
			continue
		}
		first.late = first.late || before != nil && before.late
		first.joined = strings.ContainsAny(kinds[len(left):len(kinds)-len(right)], "&+") || strings.Contains(right, "+") // "on Sundays also at 18:00"
		rest := readPhrase(phraseReader{words: words[i+1:]})
		more, ok := rest.rules, rest.isPart() && rest.follows(&first)
		if !ok {
			more, ok = readSeveral(words[i+1:], &first)
		}
		if lines = append(first.rules, more...); ok && len(lines) <= maxRules {
			return lines, true
		}
	}
	return nil, false
}

const joiners = ",&+;"

// between reports whether a part may end with a word of one kind, and the next one begin with the other: times and days, or days and times.
func between(last, next byte) bool {
	const times = "tlnhp"
	return last == monthWord || (strings.IndexByte(times, last) >= 0) != (strings.IndexByte(times, next) >= 0)
}

// follows reports whether a part can follow another one: the half of the day, the months and the unit of that one may hold for both,
// and without an "and" the second may replace the first: "every day at 9:00, Mondays at 10:00".
func (p *phrase) follows(before *phrase) bool {
	switch {
	case before == nil:
		return true
	case p.plain && (before.late || p.clocks[0] < slices.Max(before.clocks) && slices.Max(before.clocks) <= dayMinutes/2), before.plain && p.halved, (len(before.months) > 0) != (len(p.months) > 0):
		return false
	case p.unit == "" && slices.Contains([]string{"month", "quarter", "year"}, before.unit):
		return false
	}
	same := slices.ContainsFunc(p.weekdays, func(day int) bool { return slices.Contains(before.weekdays, day) })
	return before.joined || !same && p.unit != "day" && before.unit != "day"
}

// isPart reports whether a phrase can follow another one: it says its days and its times, and nothing that may hold for both.
func (p *phrase) isPart() bool {
	return p.reason == "" && (p.named || len(p.between) > 0) && len(p.weekdays)+len(p.ordinals)+len(p.unit) > 0 && p.interval+p.count == 0 && p.start.IsZero() && p.until.IsZero() &&
		len(p.dates)+len(p.exceptDays)+len(p.exceptMonths) == 0
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

// Who asks for what: "Run the sales report", "the model is refreshed", and behind the days "refresh the report". A name is a noun
// that is known, with words before it that say nothing else, or what has an article before "is refreshed".
var (
	aName     = `(?:[aE]?\?{0,3}\$+|[aE]\?{0,3}v)`
	askBefore = regexp.MustCompile(`^(?:a[?$v]{1,4}k|` + aName + `k?)?v(?:kv)?[,&+;]*(?:` + aName + `)?`)
	askInside = regexp.MustCompile(`[,&+;]*v` + aName)
)

// cutAsked cuts off who asks for what, but nothing between times.
func (r *phraseReader) cutAsked() {
	kinds := kindsOf(r.words)
	before, inside := len(askBefore.FindString(kinds)), askInside.FindStringIndex(kinds)
	switch {
	case before > 0 && !strings.HasPrefix(kinds[before:], "X"):
		r.words = r.words[before:]
	case before == 0 && inside != nil && (!strings.ContainsAny(kinds[:inside[0]], "tln") || !strings.ContainsAny(kinds[inside[1]:], "tln")):
		r.words = slices.Delete(r.words, inside[0], inside[1])
	}
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
