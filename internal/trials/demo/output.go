package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// output shows what happens.
type output interface {
	// begin is called first.
	begin(i introduction)
	line(l line)
	// show is called several times a second with the state of all models.
	show(s snapshot)
	// end leaves the output as a shell wants it.
	end()
	// summary is called last.
	summary(check *checklist, counters map[string]int64)
}

// introduction is what the user should know beforehand.
type introduction struct {
	title    string
	cli      string   // how to look inside
	commands []string // what to look at
	pages    string   // for a browser; "": none
}

// textLines is the output for a file or another program: one line for each thing that happens, without control characters.
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

func (t textLines) line(l line)   { fmt.Fprintln(t.out, l) }
func (t textLines) show(snapshot) {}
func (t textLines) end()          {}

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
