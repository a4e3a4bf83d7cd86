package dispatcher_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
)

// aUID is 26 letters and digits of five random bits each, 130 in all.
var aUID = regexp.MustCompile(`^[a-z2-7]{26}$`)

// A uid must not be guessed, nor sort by time: no two attempts share a beginning, as they would if time made it.
func TestEachAttemptIsNamedByRandomLettersOfItsOwn(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	uids := make([]string, 100)
	for i := range uids {
		uids[i] = fmt.Sprint("m", i)
	}
	b.put(uids...)
	d, err := dispatcher.New(b.Store, dispatcher.Config{})
	must(t, err)
	if round, err := d.RunOnce(context.Background()); err != nil || round.Started != len(uids) {
		t.Fatalf("want %d started, got %+v, %v", len(uids), round, err)
	}
	seen := map[string]bool{}
	for _, uid := range uids {
		attempt := b.Attempt(uid)
		if !aUID.MatchString(attempt) || seen[attempt[:min(8, len(attempt))]] {
			t.Fatalf("want 26 random letters and digits, got %q among %d", attempt, len(seen))
		}
		seen[attempt[:8]] = true
	}
}
