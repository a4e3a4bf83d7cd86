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
	must(t, json.Unmarshal([]byte(Item{Message: Claimed{Entry: `c{"payload":{"log":"x"}}`}, Reason: "no"}.rejected(time.Unix(1795244400, 0))), &command))
	if command.Raw != `{"payload":{"log":"x"}}` {
		t.Errorf("expected a command as it came, found %s", command.Raw)
	}
}

func (b *bench) rejectedMessages() []Rejected {
	b.t.Helper()
	entries, err := b.Fleet().Rejected(b.t.Context())
	must(b.t, err)
	return entries
}

// requeueAll requeues what is rejected, entry by entry, and says how many were moved, and how often it was refused.
func requeueAll(b *bench) any {
	moved, refused := 0, 0
	for _, entry := range b.rejectedMessages() {
		n, err := b.Fleet().RequeueRejected(b.t.Context(), []Rejected{entry})
		if moved += n; err != nil {
			refused++
		}
	}
	return [2]int{moved, refused}
}

func TestEachCallAboutRejectedMessagesChangesExactlyWhatItShould(t *testing.T) {
	twice := func(b *bench, entries []Rejected, do func([]Rejected) (int, error)) any {
		first, err := do(entries)
		must(b.t, err)
		again, err := do(entries)
		must(b.t, err)
		return []int{first, again}
	}
	eachCall(t, []callCase{
		{
			name: "a requeued message goes back once to the tail of its list, byte for byte",
			seed: keys{":claimed:p1": list{"o\xff\x00", "o", "osame", "osame"}, ":claimed:control": list{"c{}"}, ":holder": "p1", "-output": list{"before"}},
			call: func(b *bench) any {
				b.settle("p1", refusing("o\xff\x00", "o", "osame", "osame", "c{}")...)
				return twice(b, b.rejectedMessages(), func(all []Rejected) (int, error) { return b.Fleet().RequeueRejected(b.t.Context(), all) })
			},
			says: []int{5, 0},
			want: keys{"-output": list{"before", "\xff\x00", "", "same", "same"}, "-control": list{"{}"}, ":holder": "p1", ":stats": hash{"malformed": "5"}},
		},
		{
			name: "a message of which only the beginning is kept is not requeued", call: requeueAll, says: [2]int{0, 3},
			seed: keys{":rejected": list{`{"at":"x","source":"output","reason":"y","raw":"{","bytes":"9"}`, "by hand", `{"source":"nowhere"}`}},
		},
		{
			name: "nothing is requeued into a key that holds something else", call: requeueAll, says: [2]int{0, 1},
			seed: keys{":rejected": list{`{"source":"output","raw":"m"}`}, "-output": "text"},
		},
		{
			name: "a requeued command is handled though its id was noted when it was refused", call: requeueAll, says: [2]int{1, 0},
			seed: keys{
				":rejected": list{`{"source":"control","raw":"{\"type\":\"enable\",\"uid\":\"m\",\"command_id\":\"one\"}"}`}, ":commands": scores{"one": 1, "two": 2},
			},
			want: keys{"-control": list{`{"type":"enable","uid":"m","command_id":"one"}`}, ":commands": scores{"two": 2}},
		},
		{
			name: "a dropped message is forgotten once",
			seed: keys{":rejected": list{"a", "b", "a", "c"}},
			call: func(b *bench) any {
				return twice(b, b.rejectedMessages()[:3], func(all []Rejected) (int, error) { return b.Fleet().DropRejected(b.t.Context(), all) })
			},
			says: []int{3, 0},
			want: keys{":rejected": list{"c"}},
		},
	})
}

// What is larger than 16 KiB keeps its beginning, which may end within a letter.
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

func TestTheNewestRejectedMessageAboutAModelIsFoundInAnyPart(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		q, err := newQueue(b.Clients, b.Config, settings{parts: 2})
		must(t, err)
		for part, texts := range []list{
			{`{"at":"2026-11-21T06:00:02Z","uid":"m","reason":"second"}`, `{"at":"2026-11-21T06:00:09Z","uid":"n"}`},
			{`{"at":"2026-11-21T06:00:01Z","uid":"m","reason":"first"}`, "garbage"},
		} {
			must(t, b.redis.RPush(t.Context(), q.Parts[part].Keys.Rejected, texts).Err())
		}
		for _, part := range q.Parts {
			last, found, err := part.Fleet().RejectionAbout(t.Context(), "m")
			failIf(t, !found || last.Reason != "second" || err != nil, "found %v %+v, %v", found, last, err)
		}
		if _, found, err := q.Parts[0].Fleet().RejectionAbout(t.Context(), "nobody"); found || err != nil {
			t.Errorf("found one about nobody, %v", err)
		}
	})
}
