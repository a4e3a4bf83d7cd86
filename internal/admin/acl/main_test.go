package acl_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

var (
	must   = testkit.Must
	equal  = testkit.Equal
	failIf = testkit.FailIf
	stopIf = testkit.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }
