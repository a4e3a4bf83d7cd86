package apply

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/testkit"
)

func (b *bundle) try() error {
	d, err := definitions.ReadDirectory(b.path)
	if err != nil {
		return err
	}
	plan, err := New(b.t.Context(), b.queue, d, Options{Owner: "ann", Prune: true, By: "ann", MaxDelete: "10"})
	if err != nil {
		return err
	}
	return plan.CarryOut(b.t.Context())
}

// An apply that Redis leaves half done says so, has deleted nothing that the directory has, and is done whole when it is repeated.
func TestAnApplyOfWhichACallFailsIsToldAndCanBeRepeated(t *testing.T) {
	wanted := strings.ReplaceAll(documents("2"), "uid: c", "uid: d") + "---\nname: default\ntimeout: 7m\n---\nname: nightly\nretries: [1m]\n"
	for n := 1; ; n++ {
		server := testkit.Miniredis(t)
		b := setup(t, server)
		b.carryOut(b.plan(documents("1")))
		fault := new(testkit.Fault)
		b.client.AddHook(fault)
		must(t, os.WriteFile(filepath.Join(b.path, "fleet.yaml"), []byte(wanted), 0o600))
		fault.Arm(n)
		err := b.try()
		struck := fault.Struck()
		fault.Arm(0)
		stopIf(t, struck != errors.Is(err, testkit.ErrFault), "call %d: failed: %v, told: %v", n, struck, err)
		a, other := b.record("a"), b.record("b")
		stopIf(t, !a.Exists || !other.Exists, "call %d: deleted what the directory has", n)
		must(t, b.try())
		for uid, payload := range map[string]string{"a": `{"n":2}`, "b": `{"n":2}`, "c": "", "d": `{"n":2}`} {
			found := b.record(uid)
			failIf(t, found.Exists != (payload != "") || found.Payload != payload, "call %d: %s: expected %s, found %s", n, uid, payload, found.Payload)
		}
		stored, err := b.queue.Parts[0].Policies(t.Context(), []string{"default", "nightly"})
		failIf(t, err != nil || len(stored) != 2 || stored["nightly"].Timeout != stored["default"].Timeout,
			"call %d: expected both policies, the second completed with the first, found %v, %v", n, stored, err)
		if !struck {
			failIf(t, n < 8, "expected more calls than %d", n)
			return
		}
	}
}
