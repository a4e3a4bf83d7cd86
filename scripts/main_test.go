package scripts

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestMain(m *testing.M) {
	LogTo(nil)
	testkit.Main(m)
}
