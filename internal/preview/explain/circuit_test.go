package explain

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
)

func TestACircuitIsToldByWhatFailsHowManyWaitAndHowOftenOneIsTried(t *testing.T) {
	opened := model.CircuitState{OpenedAt: at("06:00")}
	for want, c := range map[string]struct {
		circuit flow.KeyCircuit
		every   time.Duration
	}{
		"host03 fails: 20 of 20. 167 models wait. One is tried every 2 minutes. Its circuit opened at 06:00.": {
			flow.KeyCircuit{Key: "host=host03", CircuitState: opened, Recent: "11111111111111111111", Parked: 167}, 2 * time.Minute,
		},
		"eu fails: 2 of 3. 1 model waits. One is tried every minute. Its circuit opened at 06:00.": {flow.KeyCircuit{Key: "region=eu", CircuitState: opened, Recent: "011", Parked: 1}, time.Minute},
		`0 models wait. It was opened by ann at 06:00. Reason: "down".`:                            {flow.KeyCircuit{Key: "host=a", CircuitState: opened, Recent: "0", By: "ann", Reason: "down"}, 0},
	} {
		if got := CircuitText(&c.circuit, c.every, func(at time.Time) string { return at.Format("15:04") }); got != want {
			t.Errorf("expected %s\nfound    %s", want, got)
		}
	}
}
