package simulation

import (
	"flag"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "replay one seed with a trace (TestReplay)")
	seedsFlag = flag.Int("seeds", 0, "how many seeds TestSoak runs")
	firstFlag = flag.Uint64("first", 1, "the first seed of TestSoak")
	bugFlag   = flag.String("bug", "", "the planted bug that TestReplay runs with, by its name in bugs")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // short runs of many small values: memory is cheaper than time
	goleak.VerifyTestMain(m)
}
