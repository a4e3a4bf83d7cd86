package store

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	miniredis "github.com/alicebob/miniredis/v2/server"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestOnlyTheDifferenceBetweenTwoHashesIsTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := make(values, len(fieldNames)), make(values, len(fieldNames))
		for i := range before {
			before[i] = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "before")
			after[i] = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "after")
		}
		before[places[FieldError]], after[places[FieldError]] = "", "" // the script decides it
		var w encoder
		w.addFields(&Transition{before: before, after: after}, "2", false)
		got, words := asHash(before), strings.Split(string(w.words), "\n")[1:]
		for _, word := range words {
			switch kind, name, _ := strings.Cut(word, "="); kind {
			case "gone":
				delete(got, name)
			case "now":
				got[name] = "2"
			case "field":
				got[name], w.values = w.values[0].(string), w.values[1:]
			}
		}
		if !cmp.Equal(asHash(after), got) || len(w.values) > 0 {
			t.Errorf("%v with %v is %v, want %v", asHash(before), words, got, asHash(after))
		}
		if changed := changed(asHash(before), asHash(after)); len(words) != len(changed) {
			t.Errorf("more than the difference is told: %v, want %v", words, changed)
		}
	})
}

func TestAnUnreadableFieldIsAFaultWithASafeValue(t *testing.T) {
	tests := []struct{ field, value, fault string }{
		{"refresh_at", "tomorrow", `refresh_at: expected an RFC 3339 time, found "tomorrow"`},
		{"deadline_at", "1795240800000", `deadline_at: expected an RFC 3339 time, found "1795240800000"`},
		{"attempt_no", "-1", `attempt_no: expected a whole number, found "-1"`},
		{"attempt_no", "1.5", `attempt_no: expected a whole number, found "1.5"`},
		{"progress", strings.Repeat("9", 99), `progress: expected a whole number, found "` + strings.Repeat("9", 60) + `"…`},
		{"phase", "wide", `phase: expected a duration, found "wide"`},
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			b.seed(keys{":model:m1": hash{"rev": "7", test.field: test.value}})
			record := b.load("m1")
			expectEqual(t, "fault", test.fault, record.Fault)
			if !record.Exists || record.AttemptNo != 0 || record.Progress != 0 || !record.RefreshAt.IsZero() || !record.DeadlineAt.IsZero() {
				t.Errorf("%s %q was read as %+v", test.field, test.value, record.State)
			}
			b.server.Flush(t)
		}
	})
}

func TestATransitionHealsAnUnreadableField(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(waitingKeys(), keys{":model:m1": hash{"rev": "x", "refresh_at": "tomorrow", "progress": "half"}}))
		b.mustApply(b.start("m1", "a1"))
		if record := b.load("m1"); record.Fault != "" || record.AttemptUID != "a1" || record.Rev() != "1795240800000" {
			t.Errorf("fault %q, attempt %q, rev %q; want none, a1, the clock", record.Fault, record.AttemptUID, record.Rev())
		}
	})
}

func TestLoadTellsWhatIsNotStored(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(waitingKeys())
		records, err := b.Load(t.Context(), list{"m1", "nobody", "m1"})
		if err != nil || len(records) != 2 {
			t.Fatalf("Load = %d records, %v; want 2", len(records), err)
		}
		stored, nobody := records["m1"], records["nobody"]
		if !stored.Exists || stored.Rev() != "7" || stored.Payload != `{"input_url":"u"}` || stored.Fault != "" {
			t.Errorf("stored model was read as %+v", stored)
		}
		if nobody.Exists || nobody.UID != "nobody" || nobody.Rev() != "" || nobody.Fault != "" {
			t.Errorf("absent model was read as %+v", nobody)
		}
	})
}

func TestKeysOfAWrongTypeAreFaultsOfTheirModelOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(waitingKeys(), keys{":model:list": list{"x"}, ":model:odd": dueModel, ":payload:odd": list{"x"}}))
		records, err := b.Load(t.Context(), list{"list", "odd", "m1", "none"})
		must(t, err)
		for uid, prefix := range map[string]string{"list": "hash: WRONGTYPE", "odd": "payload: WRONGTYPE", "m1": "", "none": ""} {
			if fault := records[uid].Fault; !strings.HasPrefix(fault, prefix) || prefix == "" && fault != "" {
				t.Errorf("fault of %s: %q, want %q", uid, fault, prefix)
			}
		}
		if !records["list"].Exists || records["none"].Exists || records["m1"].Payload == "" {
			t.Error("the fault of one model changed another")
		}
	})
}

// A pipeline tells its first error only, and a missing payload is one; the model behind it must not look empty.
func TestAnErrorBehindAMissingPayloadIsAnErrorOfLoad(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	b.seed(keys{":model:m2": dueModel, ":payload:m2": `{"input_url":"u"}`})
	reads := 0
	b.server.Mini.Server().SetPreHook(func(peer *miniredis.Peer, command string, _ ...string) bool {
		if command != "GET" {
			return false
		}
		if reads++; reads == 2 {
			peer.WriteError("MASTERDOWN Link with MASTER is down")
		}
		return reads == 2
	})
	if records, err := b.Load(t.Context(), list{"nobody", "m2"}); err == nil {
		t.Errorf("Load succeeded, and m2 has the payload %q", records["m2"].Payload)
	}
}

func TestAModelWithoutAKnownPolicyWaitsWithTheDefault(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{
			":model:m1": but(dueModel, "policy", "gone"),
			":model:m2": but(dueModel, "policy", "bad"),
			":model:m3": but(dueModel, "policy", "good"),
			":policies": hash{"bad": "{", "good": `{"timeout":"7m"}`},
		})
		records, err := b.Load(t.Context(), list{"m1", "m2", "m3"})
		must(t, err)
		expectEqual(t, "fault of m1", `policy: expected the name of a stored policy, found "gone"`, records["m1"].Fault)
		expectEqual(t, "fault of m2", `policy: expected the name of a stored policy, found "bad"`, records["m2"].Fault)
		expectEqual(t, "policy of m1", policy.Default(), records["m1"].Policy)
		if good := records["m3"]; good.Fault != "" || good.Policy.Timeout != 7*time.Minute {
			t.Errorf("policy of m3: fault %q, timeout %v; want none, 7m", good.Fault, good.Policy.Timeout)
		}
	})
}

func TestAScheduleThatCannotBeReadIsAFault(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{
			":model:m1": but(dueModel, "rrule", "FREQ=NEVER", "dtstart", "2026-01-01T00:00:00"),
			":model:m2": but(dueModel, "rrule", "FREQ=DAILY", "dtstart", "2026-01-01T05:00:00", "timezone", "Europe/Berlin"),
		})
		records, err := b.Load(t.Context(), list{"m1", "m2"})
		must(t, err)
		if bad := records["m1"]; bad.Fault == "" || bad.Schedule != nil {
			t.Errorf("fault %q, schedule %v; want a fault and none", bad.Fault, bad.Schedule)
		}
		good := records["m2"]
		expectEqual(t, "fault", "", good.Fault)
		expectEqual(t, "planned", time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC), good.Planned(b.now))
	})
}

func TestPoliciesAreReadByName(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":policies": hash{"slow": `{"timeout":"2h"}`, "bad": `{"timeout":-1}`}})
		policies, err := b.Policies(t.Context(), list{"", "default", "slow", "bad", "gone"})
		must(t, err)
		for _, name := range []string{"", "default"} {
			expectEqual(t, "policy "+name, policy.Default(), policies[name])
		}
		if len(policies) != 3 || policies["slow"].Timeout != 2*time.Hour {
			t.Errorf("policies %v, want the default twice and slow", policies)
		}
	})
}
