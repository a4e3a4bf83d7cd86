package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestASuccessThatCameTooLateIsToldAsTheReason(t *testing.T) {
	for late, want := range map[time.Duration]string{
		0:                       "no answer in time",
		300 * time.Millisecond:  "a success came 1s after it had timed out",
		3200 * time.Millisecond: "a success came 3s after it had timed out",
	} {
		got := reasonOf(&model.Attempt{Outcome: model.EventTimeout, ErrorType: policy.ReasonTimeout, Late: late})
		if got != want {
			t.Errorf("%s late: got %q, want %q", late, got, want)
		}
	}
}

func TestWorkersThatDiedOverAModelAreTold(t *testing.T) {
	record := &store.Record{Model: model.Model{UID: "m"}}
	record.Deaths = 2
	got := View{Record: record, Status: model.StatusScheduled}.StatusText()
	if !strings.Contains(got, "2 workers have died over it.") {
		t.Errorf("expected the deaths, found %q", got)
	}
}
