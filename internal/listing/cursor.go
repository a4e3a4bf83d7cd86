package listing

import (
	"encoding/base64"
	"encoding/json"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

// The orders of a list; empty: none.
const (
	SortDue     = "due"
	SortFailing = "failing"
)

// Cursor is the end of a page: behind a model in an order, or in a step of a walk.
type Cursor struct {
	Sort  string      `json:"sort,omitempty"`
	Score int64       `json:"score,omitempty"`
	Part  int         `json:"part,omitempty"`
	Place store.Place `json:"place,omitempty"` // where the step began
	UID   string      `json:"uid,omitempty"`
}

// String returns the cursor as the next command takes it.
func (p Cursor) String() string {
	text, _ := json.Marshal(p) // texts and numbers can be written
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseCursor reads the text of a cursor; empty: the beginning.
func ParseCursor(text, sort string) (p Cursor, err error) {
	if text == "" {
		return Cursor{Sort: sort, Place: store.WalkBegins}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil || p.UID == "" && (sort != "" || p.Place == "") || p.Part < 0 {
		return p, document.Refuse("--after", "a cursor as ls has told it", document.Found(text))
	}
	if p.Sort != sort {
		return p, document.Refuse("--after", "the cursor of a list in the same order", "that of another")
	}
	return p, nil
}
