package acl_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
