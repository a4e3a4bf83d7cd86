package demo

import (
	"encoding/json"
	"io"

	"github.com/refreshd/refreshd/model"
)

// jsonLines is the output for a program: one JSON object for each thing that happens, and a last one as summary.
type jsonLines struct{ out io.Writer }

func (j jsonLines) begin(i introduction) {
	j.print(map[string]any{"title": i.title, "cli": i.cli, "commands": i.commands, "dashboard": i.pages})
}

func (j jsonLines) line(l line) {
	j.print(map[string]any{
		"at": model.FormatTime(l.at), "uid": l.uid, "event": l.event, "try": l.try, "next": l.next, "why": l.why,
	})
}

func (j jsonLines) show(snapshot) {}
func (j jsonLines) end()          {}

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
