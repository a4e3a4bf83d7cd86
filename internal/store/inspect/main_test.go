package inspect_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
)

func TestMain(m *testing.M) {
	store.LogTo(nil)
	testkit.Main(m)
}
