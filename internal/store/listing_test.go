package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/refreshd/refreshd/model"
)

func (b *bench) list(text string) (uids []string) {
	b.t.Helper()
	err := b.Report().EachSelected(b.t.Context(), picks(b.t, text), func(chunk []string) error {
		if len(chunk) > ScanCount {
			b.t.Errorf("a chunk of %d uids, want at most %d", len(chunk), ScanCount)
		}
		uids = append(uids, chunk...)
		return nil
	})
	must(b.t, err)
	slices.Sort(uids)
	return uids
}

func TestEachModelIsListedOnceAndNoneOfAnotherQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		var want []string
		all := keys{":model:a:b": hash{"rev": "1"}, ":model:broken": "no hash", ":payload:other": "{}", ":due": scores{"ghost": 1}}
		for i := range 3 * ScanCount {
			uid := fmt.Sprintf("tbl_%d", i)
			all[":model:"+uid], want = hash{"rev": "1"}, append(want, uid)
		}
		b.seed(all)
		for _, foreign := range []string{"bigtables:model:x", "{bigtables:1}:model:x", "x{bigtables}:model:x"} {
			must(t, b.write(foreign, "x"))
		}
		slices.Sort(want)
		expectEqual(t, "by prefix", want, b.list("uid=tbl_*"))
		expectEqual(t, "all", append([]string{"a:b", "broken"}, want...), b.list(""))
	})
}

func TestAListingEndsWithTheErrorOfItsVisitor(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":model:a": hash{"rev": "1"}})
		enough := errors.New("enough")
		if err := b.Report().EachSelected(t.Context(), model.Selector{}, func([]string) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("found %v, want %v", err, enough)
		}
	})
}

func TestPolicyNamesAreThoseThatPeopleGave(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		read := func() []string {
			names, err := b.Report().PolicyNames(t.Context())
			must(t, err)
			return names
		}
		expectEqual(t, "none", list{"default"}, read())
		b.seed(keys{":policies": hash{"nightly": "{}", "inline-0123456789abcdef": "{}", "default": "{}"}})
		expectEqual(t, "some", list{"default", "nightly"}, read())
	})
}

// SCAN may return a key twice while the table grows or shrinks.
func TestAKeyThatIsScannedTwiceIsListedOnce(t *testing.T) {
	seen := newSeen()
	expectEqual(t, "first", []string{"a", "b"}, seen.fresh([]string{"a", "b", "a"}))
	expectEqual(t, "second", []string{"c"}, seen.fresh([]string{"b", "c"}))
}
