package dashboard

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

var rejectedPage = page{path: "rejected", title: "Rejected", nav: true, file: "rejected", read: readRejected, live: []string{"rejected-list"}}

// rejections are the rejected messages of a page, newest first.
type rejections struct {
	Messages     []rejection
	Total, From  int
	Newer, Older string // addresses; "": there are none
}

// rejection is a rejected message.
type rejection struct {
	ID, Source, UID, Reason string
	At                      moment
	Link                    string // of the model that it names
	Text                    string // what can be shown of it
	Size                    string // in bytes, if not all of it is kept
	Whole                   bool   // it can be requeued
}

const (
	// rejectedAPage is how many messages a page shows.
	rejectedAPage = 25
	// mostRaw is how much of a message is shown, in bytes.
	mostRaw = 2000
)

func readRejected(ctx context.Context, v *visit) (any, error) {
	now, err := v.queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := v.queue.Fleet().Rejected(ctx, func(*store.Rejected) bool { return true })
	if err != nil {
		return nil, err
	}
	var all []store.Rejected
	for _, part := range parts {
		all = append(all, part.Entries...)
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b store.Rejected) int { return strings.Compare(b.At, a.At) })
	from, _ := strconv.Atoi(v.get("from")) // what is no number begins in front
	from = max(0, min(from, len(all)))
	page := &rejections{Total: len(all), From: from}
	for i := range all[from:min(len(all), from+rejectedAPage)] {
		page.Messages = append(page.Messages, newRejection(v.site, &all[from+i], now))
	}
	if from > 0 {
		page.Newer = v.link("rejected", "from", strconv.Itoa(max(0, from-rejectedAPage)))
	}
	if from+rejectedAPage < len(all) {
		page.Older = v.link("rejected", "from", strconv.Itoa(from+rejectedAPage))
	}
	return page, nil
}

func newRejection(site *site, r *store.Rejected, now time.Time) rejection {
	raw := r.Raw
	if r.RawBase64 != "" {
		decoded, _ := base64.StdEncoding.DecodeString(r.RawBase64) // what of it is none is not shown
		raw = string(decoded)
	}
	_, err := r.Message()
	shown := rejection{ID: r.ID(), Source: r.Source, UID: r.UID, Reason: r.Reason, Text: visible(raw, mostRaw), Size: r.Bytes, Whole: err == nil}
	if r.UID != "" {
		shown.Link = site.link("model", "uid", r.UID)
	}
	if at, err := time.Parse(time.RFC3339, r.At); err == nil {
		shown.At = newMoment(at, now)
	}
	return shown
}

// visible shows bytes of anybody: what is no letter, sign or space is told by its number, so that nothing hides or turns the direction of writing.
func visible(raw string, most int) string {
	var shown strings.Builder
	for i := 0; i < len(raw); {
		if i >= most {
			return shown.String() + fmt.Sprintf("… and %d bytes more", len(raw)-i)
		}
		r, size := utf8.DecodeRuneInString(raw[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&shown, `\x%02x`, raw[i])
		case r == '\n' || unicode.IsPrint(r):
			shown.WriteRune(r)
		default:
			fmt.Fprintf(&shown, `\u{%x}`, r)
		}
		i += size
	}
	return shown.String()
}

// requeueRejected moves a rejected message back to the list that it came from.
func requeueRejected(ctx context.Context, v *visit) (outcome, error) {
	return changeRejected(ctx, v, "is requeued: look whether it is rejected again.", func(part *store.Store, entries []store.Rejected) (int, error) {
		for i := range entries {
			if _, err := entries[i].Message(); err != nil {
				return 0, err
			}
		}
		return part.Fleet().RequeueRejected(ctx, entries)
	})
}

func dropRejected(ctx context.Context, v *visit) (outcome, error) {
	return changeRejected(ctx, v, "is forgotten.", func(part *store.Store, entries []store.Rejected) (int, error) {
		return part.Fleet().DropRejected(ctx, entries)
	})
}

func changeRejected(ctx context.Context, v *visit, told string, change func(*store.Store, []store.Rejected) (int, error)) (outcome, error) {
	if err := v.queue.RequireWhole(); err != nil {
		return outcome{}, err
	}
	id := v.get("id")
	found, err := v.queue.Fleet().Rejected(ctx, func(r *store.Rejected) bool { return r.ID() == id })
	if err != nil {
		return outcome{}, err
	}
	done := 0
	for _, part := range found {
		count, err := change(part.Part, part.Entries)
		if done += count; err != nil {
			return outcome{}, v.queue.PartError(part.Part, err)
		}
	}
	if done == 0 {
		return outcome{}, document.Refuse("id", "that of a rejected message that is kept", document.Found(id))
	}
	return outcome{told: "The message " + id + " " + told}, nil
}
