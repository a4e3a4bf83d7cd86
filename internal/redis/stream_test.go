package redis

import "testing"

func TestTheIDsOfAStreamAreComparedAsNumbers(t *testing.T) {
	for _, ids := range [][2]string{{"9-0", "10-0"}, {"1-9", "1-10"}, {"1-0", "1-1"}} {
		failIf(t, CompareIDs(ids[0], ids[1]) >= 0 || CompareIDs(ids[1], ids[0]) <= 0 || CompareIDs(ids[0], ids[0]) != 0, "want %s before %s alone", ids[0], ids[1])
	}
}
