package demo

import (
	"encoding/json"
	"io"

	"github.com/refreshd/refreshd/model"
)

// objects is the view for a program: one JSON object for each thing that happens, and a last one as summary.
type objects struct{ out io.Writer }

func (o objects) begin(i introduction) {
	o.print(map[string]any{"title": i.title, "cli": i.cli, "commands": i.commands})
}

func (o objects) line(l line) {
	o.print(map[string]any{
		"at": model.FormatTime(l.at), "uid": l.uid, "event": l.event, "try": l.try, "next": l.next, "why": l.why,
	})
}

func (o objects) show(snapshot) {}
func (o objects) end()          {}

func (o objects) summary(check *checklist, counters map[string]int64) {
	type seen struct {
		UID  string `json:"uid"`
		Text string `json:"behaviour"`
		Seen bool   `json:"seen"`
	}
	list := make([]seen, len(behaviours))
	for i, behaviour := range behaviours {
		list[i] = seen{behaviour.uid, behaviour.text, check.ticked[i]}
	}
	o.print(map[string]any{"seen": list, "counters": counters})
}

func (o objects) print(value any) {
	encoder := json.NewEncoder(o.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // as with fmt.Fprintln, an audience that has gone is no reason to fail
}
