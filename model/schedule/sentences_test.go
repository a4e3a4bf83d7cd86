package schedule

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/words"
)

// meaning is the meaning of a sentence, as its author wrote it down.
type meaning struct {
	refused           bool
	rule, zone, start string
	spread            time.Duration
}

// readMeaning reads "DAILY;BYHOUR=6 + DAILY;BYHOUR=8; zone=Europe/Berlin".
func readMeaning(t *testing.T, text string) (m meaning) {
	t.Helper()
	if text == "refused" {
		return meaning{refused: true}
	}
	parts := strings.Split(text, "; ")
	m.rule = "RRULE:FREQ=" + strings.ReplaceAll(parts[0], " + ", "\nRRULE:FREQ=")
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "zone":
			m.zone = value
		case "start":
			m.start = value
		case "spread":
			m.spread = check.Got(time.ParseDuration(value))(t)
		default:
			t.Fatalf("expected zone, start or spread, found %q", part)
		}
	}
	return m
}

// occurrences are the first ones of some years, and the ones in the nights in which the clocks of Berlin change.
func (m meaning) occurrences(t *testing.T) (all []string) {
	t.Helper()
	zone, start := m.zone, m.start
	if zone == "" {
		zone = "Europe/Berlin"
	}
	if start == "" {
		start = "2027-01-01T00:00:00"
	}
	s, err := Parse(m.rule, zone, start)
	stopIf(t, err != nil, "%s: %v", m.rule, err)
	for _, from := range []string{"2026-12-31", "2027-03-27", "2027-05-31", "2027-10-30", "2028-02-28", "2030-12-30"} {
		after := check.Got(time.Parse(time.DateOnly, from))(t)
		for range 60 {
			next, ok := s.Next(after)
			if !ok {
				break
			}
			all, after = append(all, next.Format(time.RFC3339)), next
		}
	}
	return append(all, m.zone, m.start, fmt.Sprint(m.spread))
}

// misread returns how a sentence was read otherwise than it was meant; refused: it was not read.
func misread(t *testing.T, sentence string, m meaning) (wrong string, refused bool) {
	t.Helper()
	r, err := Read(sentence)
	if err == nil {
		_, err = Parse(r.Rule, r.Timezone, "2027-01-01")
	}
	switch {
	case err != nil:
		return "", true
	case m.refused:
		return "is read as " + r.Rule, false
	}
	got := meaning{rule: r.Rule, zone: r.Timezone, start: r.Dtstart, spread: r.Spread}
	if !slices.Equal(got.occurrences(t), m.occurrences(t)) {
		return fmt.Sprintf("is read as %+v, and means %+v", r, m), false
	}
	return "", false
}

func TestNoSentenceThatPeopleWriteIsMisread(t *testing.T) {
	text := check.Got(os.ReadFile("testdata/sentences.txt"))(t)
	meant, read := 0, 0
	for line := range strings.Lines(string(text)) {
		sentence, said, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok || line[0] == '#' {
			continue
		}
		m := readMeaning(t, said)
		wrong, refused := misread(t, sentence, m)
		failIf(t, wrong != "", "%q %s", sentence, wrong)
		if m.refused {
			continue
		}
		meant++
		if !refused {
			read++
		} else if _, err := Read(sentence); testing.Verbose() {
			t.Log(err)
		}
	}
	t.Logf("%d of %d sentences with one meaning are read", read, meant)
	failIf(t, 100*read < 95*meant, "expected 95 %% of %d sentences to be read, found %d", meant, read)
}

// The grammar of this file writes sentences together with their meaning. It does not know the parser.

// said is a part of a sentence with what it means: parts of a rule, or another meaning.
type said struct{ text, rule string }

func pickSaid(r *rand.Rand, list ...said) said { return list[r.Intn(len(list))] }

// saidDays are the days of a sentence; its times replace "%s" in a text.
func saidDays(r *rand.Rand) said {
	days := []said{{"Monday", "MO"}, {"Tuesday", "TU"}, {"Wednesday", "WE"}, {"Thursday", "TH"}, {"Friday", "FR"}, {"Saturday", "SA"}, {"Sunday", "SU"}}
	months := strings.Fields("January February March April May June July August September October November December")
	a := r.Intn(5)
	b := a + 2 + r.Intn(5-a) // "Monday to Tuesday" means "Monday, Tuesday"
	month, n := r.Intn(12), 1+r.Intn(28)
	short := func(text string) string { return text[:3] }
	ranged := ""
	for day := a; day <= b; day++ {
		ranged += "," + days[day].rule
	}
	others := ""
	for day := range days {
		if day != a {
			others += "," + days[day].rule
		}
	}
	weekly := func(text, list string) said { return said{text, "WEEKLY;BYDAY=" + list} }
	ordinal := strings.Fields("first second third fourth")[r.Intn(4)]
	nth := map[string]string{"first": "1", "second": "2", "third": "3", "fourth": "4"}[ordinal]
	suffix := func(n int) string {
		if n > 10 && n < 20 {
			return "th"
		}
		return []string{"th", "st", "nd", "rd", "th", "th", "th", "th", "th", "th"}[n%10]
	}
	date, day := strconv.Itoa(n), strconv.Itoa(n)+suffix(n)
	every := strconv.Itoa(2 + r.Intn(9))
	return pickSaid(r,
		said{"every day", "DAILY"}, said{"daily", "DAILY"}, said{"each day", "DAILY"}, said{"every " + every + " days", "DAILY;INTERVAL=" + every},
		weekly("every "+days[a].text, days[a].rule), weekly("on "+days[a].text+"s", days[a].rule), weekly(short(days[a].text), days[a].rule),
		weekly("every "+days[a].text+" and "+days[b].text, days[a].rule+","+days[b].rule), weekly(days[b].text+"s and "+days[a].text+"s", days[a].rule+","+days[b].rule),
		weekly(days[a].text+" to "+days[b].text, ranged[1:]), weekly("from "+days[a].text+" through "+days[b].text, ranged[1:]),
		weekly(short(days[a].text)+"-"+short(days[b].text), ranged[1:]), weekly("every day except "+days[a].text, others[1:]),
		weekly("daily but not on "+days[a].text+"s", others[1:]), weekly("every weekday", "MO,TU,WE,TH,FR"), weekly("on working days", "MO,TU,WE,TH,FR"),
		weekly("weekends", "SA,SU"), weekly("weekdays except Wednesday", "MO,TU,TH,FR"), said{"every " + every + " weeks on " + days[a].text, "WEEKLY;INTERVAL=" + every + ";BYDAY=" + days[a].rule},
		said{"every other " + days[a].text, "WEEKLY;INTERVAL=2;BYDAY=" + days[a].rule}, said{"every " + days[a].text + " in " + months[month], fmt.Sprintf("WEEKLY;BYMONTH=%d;BYDAY=%s", month+1, days[a].rule)},
		said{"on the " + day + " of the month", "MONTHLY;BYMONTHDAY=" + date}, said{day + " every month", "MONTHLY;BYMONTHDAY=" + date}, said{"monthly on the " + day, "MONTHLY;BYMONTHDAY=" + date},
		said{"every " + every + " months on the " + day, "MONTHLY;INTERVAL=" + every + ";BYMONTHDAY=" + date}, said{"on the last day of the month", "MONTHLY;BYMONTHDAY=-1"},
		said{"on the " + ordinal + " " + days[a].text + " of the month", "MONTHLY;BYDAY=" + nth + days[a].rule}, said{"last " + days[a].text + " of every month", "MONTHLY;BYDAY=-1" + days[a].rule},
		said{"every year on " + months[month] + " " + date, fmt.Sprintf("YEARLY;BYMONTH=%d;BYMONTHDAY=%s", month+1, date)}, said{date + " " + months[month] + " every year", fmt.Sprintf("YEARLY;BYMONTH=%d;BYMONTHDAY=%s", month+1, date)},
		said{"every quarter on the " + day, "YEARLY;BYMONTH=1,4,7,10;BYMONTHDAY=" + date},
	)
}

func saidClock(r *rand.Rand, hour, minute int) string {
	half, twelve := "AM", hour
	if hour >= 12 {
		half, twelve = "PM", hour-12
	}
	if twelve == 0 {
		twelve = 12
	}
	switch r.Intn(4) {
	case 0:
		return fmt.Sprintf("%d:%02d %s", twelve, minute, half)
	case 1:
		return fmt.Sprintf("%d:%02d%s", twelve, minute, strings.ToLower(half))
	default:
		return fmt.Sprintf("%02d:%02d", hour, minute)
	}
}

func generated(r *rand.Rand) (sentence string, m meaning) {
	hour, minute := r.Intn(23), r.Intn(60)
	days := saidDays(r)
	var text, rule string
	switch at := saidClock(r, hour, minute); r.Intn(8) {
	case 0: // an interval of elapsed time
		unit := pickSaid(r, said{"hours", "HOURLY"}, said{"minutes", "MINUTELY"}, said{"seconds", "SECONDLY"}, said{"hrs", "HOURLY"}, said{"mins", "MINUTELY"})
		n := 2 + r.Intn(50)
		text, rule = fmt.Sprintf("every %d %s", n, unit.text), fmt.Sprintf("%s;INTERVAL=%d", unit.rule, n)
	case 1: // a part of the day
		from := r.Intn(10)
		to := from + 1 + r.Intn(10)
		var hours []string
		for h := from; h <= to; h++ {
			hours = append(hours, strconv.Itoa(h))
		}
		text = fmt.Sprintf(pickSaid(r, said{text: "every hour from %d:00 to %d:00"}, said{text: "hourly between %d:00 and %d:00"}, said{text: "%02d:00-%02d:00 every hour"}).text, from, to)
		rule = "DAILY;BYHOUR=" + strings.Join(hours, ",")
		if r.Intn(2) == 0 {
			text, rule = text+" on weekdays", "WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR="+strings.Join(hours, ",")
		}
	case 2: // the minute of each hour
		text, rule = fmt.Sprintf("every hour at :%02d", minute), fmt.Sprintf("HOURLY;BYMINUTE=%d", minute)
	case 3: // the time first
		text, rule = at+" "+days.text, fmt.Sprintf("%s;BYHOUR=%d;BYMINUTE=%d", days.rule, hour, minute)
	case 4: // two times, one of them a full hour later
		text = days.text + fmt.Sprintf(" at %02d:%02d and %02d:%02d", hour, minute, hour+1, minute)
		rule = fmt.Sprintf("%s;BYHOUR=%d,%d;BYMINUTE=%d", days.rule, hour, hour+1, minute)
	default:
		text, rule = days.text+" at "+at, fmt.Sprintf("%s;BYHOUR=%d;BYMINUTE=%d", days.rule, hour, minute)
	}
	m.rule = "FREQ=" + rule
	if r.Intn(6) == 0 {
		end := pickSaid(r, said{" until 1 March 2029", ""}, said{" until March 1, 2029", ""}, said{" until 2029-03-01", ""})
		text, m.rule = text+end.text, m.rule+";UNTIL=20290301T235959"
	}
	if r.Intn(6) == 0 {
		zone := pickSaid(r, said{" Berlin time", "Europe/Berlin"}, said{" New York time", "America/New_York"}, said{" UTC", "UTC"}, said{" (Asia/Tokyo)", "Asia/Tokyo"}, said{" in the time zone Europe/Paris", "Europe/Paris"})
		text, m.zone = text+zone.text, zone.rule
	}
	return pickSaid(r, said{}, said{}, said{text: "Refresh "}, said{text: "Refresh the model "}, said{text: "refresh all feeds "}).text + text, m
}

func TestNoGeneratedSentenceIsMisread(t *testing.T) {
	r, seen, read := rand.New(rand.NewSource(22)), map[string]bool{}, 0
	for len(seen) < 600 {
		sentence, m := generated(r)
		if seen[sentence] {
			continue
		}
		seen[sentence] = true
		wrong, refused := misread(t, sentence, m)
		failIf(t, wrong != "", "%q %s", sentence, wrong)
		if !refused {
			read++
		} else if testing.Verbose() {
			_, err := Read(sentence)
			t.Log(err)
		}
	}
	t.Logf("%d of %d generated sentences are read", read, len(seen))
	failIf(t, 100*read < 95*len(seen), "expected 95 %% of %d sentences to be read, found %d", len(seen), read)
}

// idle words may come or go while the meaning stays: fillers, words of a subject, and words that repeat others.
var idle = slices.Concat(fillers(), strings.Fields(strings.Join(words.Nouns, " ")), strings.Fields("all at every each"),
	strings.Fields("am once twice but 1st please"),                          // "9:00 AM", "once every day", "but not on Mondays", "every quarter on the 1st", "twice at 8:00 and 9:00"
	strings.Fields("day month week year from daily nightly weekly monthly")) // "the 1st day of the month", "weekly on Monday", "from Monday to Friday", "daily at 9:00"

func fillers() (all []string) {
	for text, known := range english().words {
		if strings.IndexByte("_av,&Y+;", known[0].kind) >= 0 {
			all = append(all, text)
		}
	}
	return all
}

// FuzzAChangedWordChangesTheMeaning adds, removes or negates one word of a sentence that is read.
func FuzzAChangedWordChangesTheMeaning(f *testing.F) {
	for seed := range int64(400) {
		f.Add(seed, uint8(seed), uint8(seed/3), uint8(seed/7))
	}
	vocabulary := strings.Fields("not never no except without only Monday Friday weekday 2 3rd last first until before after noon 10:00 hour day month March " +
		"twice nothing less more than other some most almost about if unless or please model table nightly")
	f.Fuzz(func(t *testing.T, seed int64, place, word, kind uint8) {
		sentence, _ := generated(rand.New(rand.NewSource(seed)))
		before, err := Read(sentence)
		if err != nil {
			t.Skip("it is not read")
		}
		fields := strings.Fields(sentence)
		i := int(place) % len(fields)
		added := vocabulary[int(word)%len(vocabulary)]
		switch kind % 3 {
		case 0:
			added = strings.ToLower(strings.Trim(fields[i], ",():"))
			fields = slices.Delete(fields, i, i+1)
		case 1:
			added = vocabulary[int(word)%5]
			fields = slices.Insert(fields, i, added)
		default:
			fields = slices.Insert(fields, i, added)
		}
		if slices.Contains(idle, added) || strings.Contains(sentence, "between") && added == "until" || strings.Contains(sentence, "12:") && added == "pm" {
			return
		}
		if day := strings.ToUpper(added[:min(2, len(added))]); (day == "MO" || day == "FR") && strings.Contains(before.Rule, day) { // "Monday to Friday, Friday", "weekly on Monday"
			return
		}
		after, err := Read(strings.Join(fields, " "))
		failIf(t, err == nil && after == before, "%q and %q are both read as %+v: %q is no filler", sentence, strings.Join(fields, " "), before, added)
	})
}
