package store

import (
	flags "flag"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestMain(m *testing.M) {
	LogTo(nil)
	_ = flags.Set("rapid.checks", long.Or("10", "100")) // unless the command line says how many
	testkit.Main(m)
}
