package store

import (
	"fmt"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"

	"github.com/refreshd/refreshd/model"
)

// BenchmarkAMillionModelsOfAHundredPolicies puts policy and schedule in force for a million models, as Load does, and reports what
// that compiles.
func BenchmarkAMillionModelsOfAHundredPolicies(b *testing.B) {
	const models, shared = 1_000_000, 100
	texts := make([]string, shared)
	for i := range texts {
		texts[i] = fmt.Sprintf(`{"rrule":"FREQ=DAILY;BYHOUR=%d;BYMINUTE=%d;BYSECOND=0","timeout":"1h","retries":{"expr":"k < 5 ? %d : false"},"retry_window":"FREQ=DAILY;BYHOUR=9"}`, i%24, i%60, i)
	}
	b.ReportAllocs()
	for b.Loop() {
		var policies policyCache
		var schedules schedule.Cache
		compiled := map[policy.Retries]bool{}
		for i := range models {
			policy, err := policies.parse(texts[i%shared])
			if err != nil {
				b.Fatal(err)
			}
			m := model.Model{UID: "tbl_1"}
			if err := m.Resolve(policy, schedules.Get); err != nil {
				b.Fatal(err)
			}
			compiled[m.Policy.Retries] = true
		}
		if len(compiled) != shared {
			b.Fatalf("%d compiled policies, want %d", len(compiled), shared)
		}
		b.ReportMetric(float64(len(compiled)), "policies")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/models, "ns/model")
}
