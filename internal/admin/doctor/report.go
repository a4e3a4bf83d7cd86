package doctor

import (
	"maps"
	"slices"

	"github.com/refreshd/refreshd/internal/store"
)

// Count is how often a code was found.
type Count struct {
	Severity Severity `json:"severity"`
	Found    int      `json:"found"`
	Repaired int      `json:"mended"`
}

// Report is the result of a check.
type Report struct {
	Servers  []store.Identity `json:"servers,omitempty"` // that hold the queue and report their names
	Models   int              `json:"models"`            // model keys that were checked
	Findings []Finding        `json:"findings"`          // in the order in which they were found, of each code the first ones only
	Counts   map[string]Count `json:"codes"`             // by code, all of them
}

// Total returns how many findings of a severity are left, those that were repaired not counted.
func (r *Report) Total(severity Severity) (left int) {
	for _, count := range r.Counts {
		if count.Severity == severity {
			left += count.Found - count.Repaired
		}
	}
	return left
}

// Repaired returns how many findings were repaired.
func (r *Report) Repaired() (repaired int) {
	for _, count := range r.Counts {
		repaired += count.Repaired
	}
	return repaired
}

// Codes lists the codes of the findings, sorted.
func (r *Report) Codes() []string { return slices.Sorted(maps.Keys(r.Counts)) }

func (c *checker) note(k kind, where, found string) { c.add(k.at(where, found)) }

// add reports findings; beyond the limit they are only counted.
func (c *checker) add(findings ...Finding) {
	for _, f := range findings {
		count := c.report.Counts[f.Code]
		if count.Severity != Error { // in another part
			count.Severity = f.Severity
		}
		if count.Found++; f.Repaired {
			count.Repaired++
		}
		c.report.Counts[f.Code] = count
		if count.Found <= c.options.Limit {
			c.report.Findings = append(c.report.Findings, f)
		}
	}
}
