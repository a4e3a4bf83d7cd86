package traces_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
