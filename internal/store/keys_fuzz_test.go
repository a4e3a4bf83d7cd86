package store

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"

	"github.com/rs/zerolog"
)

// FuzzKeysOfAModel checks that an accepted uid is found again in its keys and its log lines, and that it changes neither the slot of
// a key nor the pattern by which keys are listed.
func FuzzKeysOfAModel(f *testing.F) {
	for _, uid := range []string{"t", "tbl_1", "a:b", "model:a", ":due", "a.b:c@d/e+f=g~h-i", strings.Repeat("x", 200), "{a}", "a*", "a?", "a\n", `a"`, "é"} {
		f.Add(uid)
	}
	keys := []Keys{newKeys("bigtables"), newKeys("{bigtables:3}")}
	f.Fuzz(func(t *testing.T, uid string) {
		if document.ValidateUID(uid) != nil {
			return
		}
		for _, k := range keys {
			for key, prefix := range map[string]string{k.Model(uid): k.Model(""), k.Payload(uid): k.Payload(""), k.History(uid): k.History("")} {
				if found, cut := strings.CutPrefix(key, prefix); !cut || found != uid {
					t.Fatalf("%q is found in %q as %q", uid, key, found)
				}
				if strings.ContainsAny(strings.TrimPrefix(key, k.Queue), "{}") || escapeGlob(key) != key {
					t.Fatalf("%q means more than itself in %q", uid, key)
				}
			}
		}
		var line bytes.Buffer
		log := zerolog.New(&line)
		log.Info().Str("uid", uid).Send()
		var told struct{ UID string }
		if err := json.Unmarshal(line.Bytes(), &told); err != nil || told.UID != uid || !strings.Contains(line.String(), `"uid":"`+uid+`"`) {
			t.Fatalf("%q is logged as %s", uid, line.String())
		}
	})
}
