package store

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARejectedMessageOfAWorkerKeepsNoLog(t *testing.T) {
	for raw, want := range map[string]string{
		`{"uid":"a","log" : "x \"hunter2\" \\","reason":"log"}`: `{"uid":"a","log" : "","reason":"log"}`,
		`{"log":"hunter2`: `{"log":""`, // no JSON, or only its beginning
		`{"log":"` + strings.Repeat("hunter2", maxRaw) + `"}`: `{"log":""}`, // and so all of the rest is kept
		`{"log":7}`: `{"log":7}`,
	} {
		var entry Rejected
		must(t, json.Unmarshal([]byte(Item{Message: Claimed{Entry: "o" + raw}, Reason: "no"}.rejected(time.Unix(1795244400, 0))), &entry))
		if entry.Raw != want || entry.Bytes != "" {
			t.Errorf("%.60s: expected %s, found %.60s of %q bytes", raw, want, entry.Raw, entry.Bytes)
		}
	}
	var command Rejected
	must(t, json.Unmarshal([]byte(Item{Message: Claimed{Entry: `n1 {"payload":{"log":"x"}}`}, Reason: "no"}.rejected(time.Unix(1795244400, 0))), &command))
	if command.Raw != `{"payload":{"log":"x"}}` {
		t.Errorf("expected a command as it came, found %s", command.Raw)
	}
}

// A message above 16 KiB keeps its beginning, which may end within a letter.
func TestARejectedMessageOfUpTo16KiBKeepsEveryByteAndALargeOneItsSize(t *testing.T) {
	raws := list{"plain", `{"broken":`, "<&>\u2028\x00\r\n%d", "\xff\x00\xfe", strings.Repeat("\x80x", maxRaw/2), "\xef\xbf\xbd"}
	large := list{strings.Repeat("é", maxRaw), "104857600/1048576 " + strings.Repeat("x", 999) + "\xc3"}
	everywhere(t, func(t *testing.T, b *bench) {
		entries := list{"o" + large[0], "O" + large[1]}
		for _, raw := range raws {
			entries = append(entries, "o"+raw)
		}
		b.seed(keys{":claimed:p1": entries})
		b.settle("p1", refusing(entries...)...)
		var kept, sizes list
		for _, text := range b.state()[":rejected"].(list) {
			var entry struct { // encoding/json decodes base64 into bytes
				Raw, Bytes string
				RawBase64  []byte `json:"raw_base64"`
			}
			must(t, json.Unmarshal([]byte(text), &entry))
			failIf(t, entry.Bytes != "" && entry.RawBase64 != nil, "the beginning of a text of %s bytes stands in base64", entry.Bytes)
			kept, sizes = append(kept, entry.Raw+string(entry.RawBase64)), append(sizes, entry.Bytes)
		}
		want := slices.Concat(list{strings.Repeat("é", maxRaw/2), strings.Repeat("x", 999)}, raws)
		failIf(t, !cmp.Equal(want, kept), "rejected bytes differ:\n%.300q\n%.300q", want, kept)
		expectEqual(t, "sizes", list{"32768", "104857600", "", "", "", "", "", ""}, sizes)
	})
}
