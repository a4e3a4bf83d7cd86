package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

type output interface {
	begin(i introduction)
	line(l line)
	summary(check *checklist, counters map[string]int64)
}

type introduction struct {
	title    string
	cli      string // how to look inside
	commands []string
	pages    string // for a browser; "": none
}

// textLines prints one line for each event, without control characters.
type textLines struct{ out io.Writer }

func (t textLines) begin(i introduction) {
	fmt.Fprintln(t.out, i.title+"\n")
	for _, s := range scenarios {
		fmt.Fprintln(t.out, "  "+fit(s.uid, widthUID)+"  "+s.about)
	}
	fmt.Fprintln(t.out, "\nLook inside while it runs:")
	if i.pages != "" {
		fmt.Fprintln(t.out, "  "+i.pages+" in a browser")
	}
	for _, command := range i.commands {
		fmt.Fprintln(t.out, "  "+i.cli+" "+command)
	}
	fmt.Fprintln(t.out, "\n"+columns(lineWidths, "time", "model", "event", "try", "next", "why"))
}

func (t textLines) line(l line) { fmt.Fprintln(t.out, l) }

func (t textLines) summary(check *checklist, counters map[string]int64) {
	fmt.Fprintf(t.out, "\nSeen: %d of %d\n", check.count(), len(behaviours))
	for i, behaviour := range behaviours {
		box := "[ ]"
		if check.ticked[i] {
			box = "[x]"
		}
		fmt.Fprintf(t.out, "  %s %s  %s\n", box, fit(behaviour.uid, widthUID), behaviour.text)
	}
	var counted []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		counted = append(counted, fmt.Sprintf("%s %d", document.OneLine(name), counters[name]))
	}
	fmt.Fprintln(t.out, "Counted: "+strings.Join(counted, ", "))
}

// jsonLines prints one JSON object for each event, and one as summary.
type jsonLines struct{ out io.Writer }

func (j jsonLines) begin(i introduction) {
	j.print(map[string]any{"title": i.title, "cli": i.cli, "commands": i.commands, "dashboard": i.pages})
}

func (j jsonLines) line(l line) {
	j.print(map[string]any{
		"at": model.FormatTime(l.at), "uid": l.uid, "event": l.event, "try": l.try, "next": l.next, "why": l.why,
	})
}

func (j jsonLines) summary(check *checklist, counters map[string]int64) {
	type seen struct {
		UID  string `json:"uid"`
		Text string `json:"behaviour"`
		Seen bool   `json:"seen"`
	}
	list := make([]seen, len(behaviours))
	for i, behaviour := range behaviours {
		list[i] = seen{behaviour.uid, behaviour.text, check.ticked[i]}
	}
	j.print(map[string]any{"seen": list, "counters": counters})
}

func (j jsonLines) print(value any) {
	encoder := json.NewEncoder(j.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // as with fmt.Fprintln, a reader that has gone is no reason to fail
}
