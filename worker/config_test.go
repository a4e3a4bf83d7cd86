package worker

import (
	"strings"
	"testing"
	"time"
)

func TestTheZeroConfigIsUsable(t *testing.T) {
	c := Config{}.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.Concurrency != 4 || c.Grace != 10*time.Second || c.FenceEvery != time.Second || c.Lease != 5*time.Second || c.Heartbeat != time.Second || c.Log == nil {
		t.Errorf("defaults: %+v", c)
	}
	if c.MaxBackoff != 5*time.Second || c.Backoff != 50*time.Millisecond || c.StatusEvery != 250*time.Millisecond || c.PushBatch != 500 ||
		c.Linger != 5*time.Second || c.FlushTimeout != 5*time.Second {
		t.Errorf("defaults: %+v", c)
	}
}

func TestDefaultsFitWhatIsSet(t *testing.T) {
	for _, c := range []Config{{Backoff: time.Minute}, {MaxBackoff: time.Millisecond}, {Grace: -time.Hour}, {Heartbeat: time.Minute}, {Lease: time.Second}} {
		if err := c.WithDefaults().Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAConfigOutOfRangeIsRefusedByName(t *testing.T) {
	for want, c := range map[string]Config{
		"concurrency: expected 1 to 10000, found -1":        {Concurrency: -1},
		"push batch: expected 1 to 10000, found 20000":      {PushBatch: 20000},
		"fence every: expected 10ms to 1m0s, found 1ms":     {FenceEvery: time.Millisecond},
		"heartbeat: expected 10ms to 1m0s, found 1ms":       {Heartbeat: time.Millisecond},
		"heartbeat: expected 10ms to 1m0s, found 5ms":       {Lease: 20 * time.Millisecond},
		"lease: expected 4s to 1h0m0s, found 3s":            {Lease: 3 * time.Second, Heartbeat: time.Second},
		"status every: expected 10ms to 1m0s, found -1s":    {StatusEvery: -time.Second},
		"grace: expected 0s to 1h0m0s, found 2h0m0s":        {Grace: 2 * time.Hour},
		"linger: expected 1ms to 1h0m0s, found 2h0m0s":      {Linger: 2 * time.Hour},
		"flush timeout: expected 1ms to 1h0m0s, found -1ns": {FlushTimeout: -1},
		"max backoff: expected 1ms to 1m0s, found 2m0s":     {MaxBackoff: 2 * time.Minute},
		"backoff: expected 1ms to 1s, found 2s":             {Backoff: 2 * time.Second, MaxBackoff: time.Second},
	} {
		if err := c.WithDefaults().Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
