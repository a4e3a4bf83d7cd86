package simulate

import (
	"bytes"
	"io"
	"maps"
	"slices"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Refresh is a success of a recorded series.
type Refresh struct {
	No      int                `json:"refresh"` // from 1, the oldest
	Metrics map[string]float64 `json:"metrics"`
	Suspect string             `json:"suspect"` // why it is doubted; empty: it is not

	accepted bool
	changed  *bool // as in a history
}

const maxSeriesLine = 64 << 10 // in bytes: an attempt of a history is long

// ReadSeries reads the numbers of one success a line, oldest first: {"rows": 40, "bytes": 1200}; or the output of `history -o json`, newest first.
// An error is a *LineError.
func ReadSeries(in io.Reader) (series []Refresh, err error) {
	history := false
	err = eachLine(in, maxSeriesLine, func(text []byte) error {
		if text = bytes.TrimSpace(text); len(text) == 0 {
			return nil
		}
		refresh, recorded, err := readRefresh(text)
		if history = history || recorded; refresh.Metrics != nil {
			series = append(series, refresh)
		}
		return err
	})
	if history {
		slices.Reverse(series)
	}
	return series, err
}

// readRefresh reads a line; recorded: it is an attempt of a history. Its metrics are nil if it was no success.
func readRefresh(text []byte) (refresh Refresh, recorded bool, err error) {
	value, _ := document.Decode(text)
	fields, is := value.(map[string]any)
	if !is {
		return refresh, false, &document.Error{Want: `an object such as {"rows": 40}`, Found: document.Found(string(text))}
	}
	if _, recorded = fields["attempt_uid"]; recorded {
		refresh.accepted, _ = fields["accepted"].(bool)
		if changed, is := fields["changed"].(bool); is {
			refresh.changed = &changed
		}
		fields, _ = fields["metrics"].(map[string]any)
	}
	doc := document.Reader{Fields: fields}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		n, found := doc.Number(name, -policy.MaxMetric, policy.MaxMetric)
		doc.Require(found && policy.IsMetricName(name), name, "a number under a name of small letters, digits and _")
		if refresh.Metrics == nil {
			refresh.Metrics = map[string]float64{}
		}
		refresh.Metrics[name] = n
	}
	return refresh, recorded, doc.Err()
}

// Judge returns which refreshes of a series the guards doubt. Like a poller, it judges each by those before it. Only attempts of a history may have
// been accepted. It keeps as many attempts as the guards need, and at least the usual ten.
func Judge(guards []policy.Guard, series []Refresh) []Refresh {
	kept := policy.UsualHistory
	for _, guard := range guards {
		kept = max(kept, guard.Of)
	}
	var past []model.Attempt // newest first
	usually := ""
	judged := slices.Clone(series)
	for i := range judged {
		r := &judged[i]
		itself := model.Attempt{Outcome: model.EventSuccess, Metrics: r.Metrics, Accepted: r.accepted, Changed: r.changed}
		if r.No = i + 1; !itself.FoundNothingNew() {
			itself.Suspect = model.Doubt(guards, r.Metrics, past, usually)
		}
		r.Suspect, past = itself.Suspect, slices.Insert(past, 0, itself)
		if past[0].Good() {
			usually = model.Usually(guards, past, usually)
		}
		past = past[:min(len(past), kept)]
	}
	return judged
}
