package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
)

func TestAPayloadMayHaveUpTo64KiBAndNotAByteMore(t *testing.T) {
	// {"a":"…"} are eight bytes around the text.
	if _, err := canonicalPayload(map[string]any{"a": strings.Repeat("x", 64<<10-8)}); err != nil {
		t.Errorf("64 KiB: %v", err)
	}
	_, err := canonicalPayload(map[string]any{"a": strings.Repeat("x", 64<<10-7)})
	var field *document.Error
	if !errors.As(err, &field) || err.Error() != "payload: expected at most 65536 bytes of JSON, found 65537" {
		t.Errorf("one byte more: %v", err)
	}
}
