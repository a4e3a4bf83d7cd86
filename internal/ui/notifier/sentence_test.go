package notifier

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// notices has a notice of each event, and those that are told otherwise for what they say.
var notices = map[string][]Notice{
	"disabled":  {{"uid": "tbl_1", "attempt_no": "4", "reason": "Cannot refresh after 4 attempts: timeout", "refresh_why": "disabled after 4 failures, no retry left"}},
	"recovered": {{"uid": "tbl_1", "attempt_no": "1"}},
	"fresh":     {{"uid": "tbl_1", "attempt_no": "1"}},
	"failing":   {{"uid": "tbl_1", "attempt_no": "3", "reason": "HTTP 503", "refresh_why": "retry 4 of 6 after 15m, ends before planned"}},
	"suspect":   {{"uid": "tbl_1", "attempt_no": "1", "reason": "rows 40: over 50% less than the usual 100; bytes 0: expected at least 1", "refresh_why": "suspect"}},
	"stale":     {{"uid": "tbl_1", "last_success_at": "2026-11-20T07:00:00.000Z"}, {"uid": "tbl_1"}},
	"circuit_opened": {{"key": "host=a.example"}, {"key": "host=a.example", "by": "ann", "reason": "the host moves"},
		{"key": "queue", "successes": "3", "failures": "97"}},
	"summary":        {{"of": "stale", "count": "5990"}, {"of": "failing", "count": "1", "reason": "HTTP 503"}, {"of": "circuit_opened", "count": "7"}},
	"circuit_closed": {{"key": "host=a.example"}, {"key": "queue"}},
	"new_error":      {{"error": "6b3c238ebcf1", "signature": "HTTP 503", "models": "120", "reason": "HTTP 503 of a.example"}},
}

func TestEachNoticeIsToldInShortSentences(t *testing.T) {
	if missing := slices.DeleteFunc(slices.Collect(maps.Keys(events)), func(event string) bool { return notices[event] != nil }); len(missing) > 0 {
		t.Fatalf("expected a notice of each event, found none of %v", missing)
	}
	for event, all := range notices {
		for _, one := range all {
			n := maps.Clone(one)
			n[fieldEvent], n[fieldQueue], n[fieldAt] = event, "bigtables", "2026-11-21T07:00:00.000Z"
			told := strings.Join(slices.DeleteFunc([]string{n.What(), n.Why(), n.Next()}, func(text string) bool { return text == "" }), " ")
			for sentence := range strings.SplitSeq(strings.TrimSuffix(told, "."), ". ") {
				if length := len(strings.Fields(sentence)); length < 2 || length > 15 {
					t.Errorf("%s: expected 2 to 15 words, found %d in %q", event, length, sentence)
				}
			}
			if !strings.HasSuffix(told, ".") || strings.Contains(told, "  ") || strings.Contains(told, "_error") || strings.Contains(told, "circuit_") {
				t.Errorf("%s: expected sentences, found %q", event, told)
			}
		}
	}
}
