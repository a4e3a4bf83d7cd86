package english

import (
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

var (
	inTheZone = regexp.MustCompile(`(?i)^(.+?),? (?:in the time ?zone ("\d+"|\S+)|\(([a-z][\w+/-]*)\))$`)
	byTheRule = regexp.MustCompile(`(?i)^(?:by the rule (.+)|(?:by )?([^ "]*FREQ=.+))$`)
)

func (d *draft) refresh(slots []string) { d.schedule(d.cutSubject(slots[0])) }

// request reads the action of a model, which may have a schedule or none.
func (d *draft) request(slots []string) {
	switch rest := d.cutSubject(slots[0]); rest {
	case "":
	case slots[0]:
		d.fail(errNotKnown)
	default:
		d.schedule(rest)
	}
}

// cutSubject returns what is said of the subject of a sentence, which may have the name that the policy has by now.
func (d *draft) cutSubject(text string) string {
	name, _ := d.doc["name"].(string)
	return strings.Join(words.CutSubject(strings.Fields(text), name), " ")
}

func (d *draft) schedule(text string) {
	if zone := inTheZone.FindStringSubmatch(text); zone != nil {
		d.set("timezone", d.now.value(zone[2]+zone[3]))
		text = zone[1]
	}
	if rule := byTheRule.FindStringSubmatch(text); rule != nil {
		d.set("rrule", d.now.restore(rule[1]+rule[2]))
		return
	}
	read, err := schedule.Read(d.now.restore(text))
	d.fail(d.place(err, "rrule"))
	for _, said := range [][2]string{{"timezone", read.Timezone}, {"dtstart", read.Dtstart}} {
		if said[1] != "" {
			d.set(said[0], said[1])
		}
	}
	d.spread = document.FormatDuration(read.Spread)
	d.set("rrule", read.Rule)
}

// spreads sets the spread of "twice a day", unless a sentence sets another one.
func (d *draft) spreads() {
	if _, said := d.doc["spread"]; d.spread != "" && d.spread != "0s" && !said {
		d.doc["spread"], d.lines["spread"] = d.spread, d.lines["rrule"]
	}
}

// alsoByRule adds a line to the rule of an earlier sentence.
func (d *draft) alsoByRule(slots []string) {
	rule, found := d.doc["rrule"].(string)
	if !found {
		d.refuse(`a sentence such as "Refresh the model by the rule FREQ=DAILY" before it`, d.found())
	}
	d.doc["rrule"] = rule + "\n" + d.now.restore(slots[0])
}
