package doctor

import (
	"maps"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

// The severities. Only an error breaks a guarantee.
const (
	Error   Severity = "error"   // an invariant or a guarantee is broken
	Warning Severity = "warning" // nothing is broken, but somebody should look at it
	Info    Severity = "info"    // good to know
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`  // short and stable
	Where    string   `json:"where"` // a key, the uid of a model, or a part of Redis
	Want     string   `json:"expected"`
	Found    string   `json:"found"`
	// Repair says what --repair does or has done, or begins with "by hand: ". Empty: there is nothing to do.
	Repair string `json:"repair,omitempty"`
	Mended bool   `json:"mended"`
}

// Count is how often a code was found.
type Count struct {
	Severity Severity `json:"severity"`
	Found    int      `json:"found"`
	Mended   int      `json:"mended"`
}

// Report is what an examination has found.
type Report struct {
	Models   int              // model keys that were looked at
	Findings []Finding        // in the order in which they were found, of each code the first ones only
	Counts   map[string]Count // by code, all of them
}

// Total returns how many findings of a severity are left, those that were mended not counted.
func (r *Report) Total(severity Severity) (left int) {
	for _, count := range r.Counts {
		if count.Severity == severity {
			left += count.Found - count.Mended
		}
	}
	return left
}

// Mended returns how many findings were mended.
func (r *Report) Mended() (mended int) {
	for _, count := range r.Counts {
		mended += count.Mended
	}
	return mended
}

// Codes lists what was found, sorted.
func (r *Report) Codes() []string { return slices.Sorted(maps.Keys(r.Counts)) }

// Detailed returns how many findings of a code are told one by one.
func (r *Report) Detailed(code string) (n int) {
	for _, f := range r.Findings {
		if f.Code == code {
			n++
		}
	}
	return n
}

// note adds a finding; beyond limit it is only counted.
func (r *Report) note(f Finding, limit int) {
	count := r.Counts[f.Code]
	count.Severity = f.Severity
	if count.Found++; f.Mended {
		count.Mended++
	}
	r.Counts[f.Code] = count
	if count.Found <= limit {
		r.Findings = append(r.Findings, f)
	}
}
