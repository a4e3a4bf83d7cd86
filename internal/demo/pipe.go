package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// view shows what happens.
type view interface {
	// begin is called first, with what the audience should know beforehand.
	begin(i introduction)
	line(l line)
	// show is called several times a second with the state of all models.
	show(s snapshot)
	// end leaves the output as a shell wants it.
	end()
	// summary is called last.
	summary(check *checklist, counters map[string]int64)
}

// introduction is what the audience should know beforehand.
type introduction struct {
	title    string
	cli      string   // how to look inside
	commands []string // what to look at
}

// pipe is the view for a file or another program: one line for each thing that happens, and nothing but text.
type pipe struct{ out io.Writer }

func (p pipe) begin(i introduction) {
	fmt.Fprintln(p.out, i.title)
	fmt.Fprintln(p.out)
	for _, role := range cast {
		fmt.Fprintln(p.out, "  "+fit(role.uid, widthUID)+"  "+role.about)
	}
	fmt.Fprintln(p.out, "\nLook inside while it runs:")
	for _, command := range i.commands {
		fmt.Fprintln(p.out, "  "+i.cli+" "+command)
	}
	fmt.Fprintln(p.out, "\n"+lineHead)
}

func (p pipe) line(l line)   { fmt.Fprintln(p.out, l) }
func (p pipe) show(snapshot) {}
func (p pipe) end()          {}

func (p pipe) summary(check *checklist, counters map[string]int64) {
	fmt.Fprintf(p.out, "\nSeen: %d of %d\n", check.count(), len(behaviours))
	for i, behaviour := range behaviours {
		box := "[ ]"
		if check.ticked[i] {
			box = "[x]"
		}
		fmt.Fprintf(p.out, "  %s %s  %s\n", box, fit(behaviour.uid, widthUID), behaviour.text)
	}
	var counted []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		counted = append(counted, fmt.Sprintf("%s %d", plain(name), counters[name]))
	}
	fmt.Fprintln(p.out, "Counted: "+strings.Join(counted, ", "))
}
