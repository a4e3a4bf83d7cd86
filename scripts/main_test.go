package scripts

import (
	"testing"

	"github.com/refreshd/refreshd/internal/redistest"
)

func TestMain(m *testing.M) {
	LogTo(nil)
	redistest.Main(m)
}
