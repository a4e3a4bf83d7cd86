package architecture

import (
	"os"
	"testing"
)

func TestEachPromiseNamesATestThatHoldsIt(t *testing.T) {
	document, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range untested(string(document), map[string]int{"G%d": 24}, testsOf(repository(t))) {
		t.Error(place)
	}
	requireProofs(t)
}
