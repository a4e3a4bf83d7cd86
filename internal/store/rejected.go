package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Rejected is one entry of <queue>:rejected.
type Rejected struct {
	At     string `json:"at"`
	Source string `json:"source"` // output or control
	// UID is the model that the message names; empty: it cannot be read.
	UID    string `json:"uid,omitempty"`
	Reason string `json:"reason"`
	Raw    string `json:"raw,omitempty"`
	// RawBase64 holds what is no UTF-8 text, byte for byte.
	RawBase64 string `json:"raw_base64,omitempty"`
	// Bytes is the size of a message of which only the beginning is kept; empty: all of it is.
	Bytes string `json:"bytes,omitempty"`

	text string // as it stands in the list; empty: it is not from there
}

// ID names the entry for people: it follows from its text. Two that are alike in all have one ID.
func (r *Rejected) ID() string { return ShortID(r.text) }

// Message is what the sender wrote, byte for byte; an error: not all of it is kept.
func (r *Rejected) Message() (string, error) {
	switch {
	case r.Source != sourceOutput && r.Source != sourceControl:
		return "", document.Refuse("source", sourceOutput+" or "+sourceControl, document.Found(r.Source))
	case r.Bytes != "":
		return "", document.Refuse("raw", "all "+r.Bytes+" bytes of the message", "only its beginning")
	case r.RawBase64 == "":
		return r.Raw, nil
	}
	raw, err := base64.StdEncoding.DecodeString(r.RawBase64)
	return string(raw), redis.Wrap(err, "read raw_base64")
}

// The lists that a rejected message may have come from.
const (
	sourceOutput  = "output"
	sourceControl = "control"
)

// maxRaw is how much of a message rejected keeps, in bytes: with the default cap of 1,000 messages it holds 16 MB of them at most.
const maxRaw = 16 << 10

// saidLog is the log in a message of a worker, even in half a one. It may hold secrets, so nobody keeps it.
var saidLog = regexp.MustCompile(`(?s)("log"\s*:\s*)"(?:[^"\\]|\\.)*(?:"|$)`)

// rejected is the entry for the rejected list; empty: the message is only counted.
func (i Item) rejected(now time.Time) string {
	if i.Reason == "" {
		return ""
	}
	entry := Rejected{At: model.FormatTime(now), Source: sourceOutput, Reason: i.Reason, Raw: i.Message.Raw()}
	if document.IsUID(i.UID) {
		entry.UID = i.UID
	}
	if i.Message.FromControl() {
		entry.Source = sourceControl
	} else {
		entry.Raw = saidLog.ReplaceAllString(entry.Raw, `$1""`)
	}
	if size, _, large := i.Message.Large(); large {
		entry.Bytes = size
	} else if len(entry.Raw) > maxRaw {
		entry.Raw, entry.Bytes = entry.Raw[:maxRaw], strconv.Itoa(len(entry.Raw))
	}
	if entry.Bytes != "" { // one that was cut may end within a character
		whole := strings.ToValidUTF8(entry.Raw, "")
		if len(entry.Raw)-len(whole) < utf8.UTFMax {
			entry.Raw = whole
		}
	}
	if !utf8.ValidString(entry.Raw) {
		entry.Raw, entry.RawBase64 = "", base64.StdEncoding.EncodeToString([]byte(entry.Raw))
	}
	text, _ := json.Marshal(entry) // texts only
	return string(text)
}

// readRejected reads an entry of the rejected list; what cannot be read is empty.
func readRejected(text string) (entry Rejected) {
	_ = json.Unmarshal([]byte(text), &entry)
	entry.text = text
	return entry
}

// DropKept removes entries from a list of messages that are kept for a person, and returns how many still stood there.
func DropKept[T any](ctx context.Context, s *Store, key string, entries []T, text func(*T) string) (dropped int, err error) {
	for chunk := range slices.Chunk(entries, redis.ScanCount) {
		pipe := s.Clients.Write.Pipeline()
		replies := redis.Map(chunk, func(entry T) *goredis.IntCmd { return pipe.LRem(ctx, key, 1, text(&entry)) })
		_, err := pipe.Exec(ctx)
		for _, reply := range replies {
			dropped += int(reply.Val())
		}
		if err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// ShortID names a text for people.
func ShortID(text string) string { return Digest(text)[:12] }

var requeueRejected = redis.LoadScript("requeue-rejected.lua")

// Rejected reads the rejected messages that are kept, oldest first.
func (s Fleet) Rejected(ctx context.Context) ([]Rejected, error) {
	texts, err := s.store.Clients.Read.LRange(ctx, s.store.Keys.Rejected, 0, -1).Result()
	return redis.Map(texts, readRejected), redis.Wrap(err, "read rejected messages")
}

// RejectionAbout is the newest rejected message that names a model, in whatever part of the queue it was rejected; false: none is kept, or this
// user may not look.
func (s Fleet) RejectionAbout(ctx context.Context, uid string) (last Rejected, found bool, err error) {
	for _, part := range s.store.AllParts() {
		entries, err := part.Fleet().Rejected(ctx)
		if err != nil && !redis.Refused(err) && !goredis.HasErrorPrefix(err, "WRONGTYPE") {
			return last, false, err
		}
		for _, entry := range entries {
			if entry.UID == uid && entry.At >= last.At {
				last, found = entry, true
			}
		}
	}
	return last, found, nil
}

// rejectedBatch is how many rejected messages are requeued or dropped at once: at most 3 MB of them.
const rejectedBatch = 100

// RequeueRejected moves rejected messages back to the tail of the list that each came from, and returns how many it has moved: one that is no
// longer kept was moved or dropped by somebody else. After an error it may be repeated.
func (s Fleet) RequeueRejected(ctx context.Context, entries []Rejected) (moved int, err error) {
	for chunk := range slices.Chunk(entries, rejectedBatch) {
		var args []any
		for _, entry := range chunk {
			raw, err := entry.Message()
			if err != nil {
				return moved, err
			}
			command, _ := model.DecodeCommand([]byte(raw)) // of one that cannot be read the id may be told all the same
			args = append(args, entry.text, redis.Flag(entry.Source == sourceControl), raw, command.ID)
		}
		keys := []string{s.store.Keys.Rejected, s.store.Keys.Output, s.store.Keys.Control, s.store.Keys.Commands}
		done, err := redis.RunScript(ctx, s.store.Clients.Write, requeueRejected, keys, args...).Int()
		if moved += done; err != nil {
			return moved, fmt.Errorf("requeue rejected messages: %w", err)
		}
	}
	return moved, nil
}

// DropRejected forgets rejected messages, and returns how many were still kept.
func (s Fleet) DropRejected(ctx context.Context, entries []Rejected) (dropped int, err error) {
	dropped, err = DropKept(ctx, s.store, s.store.Keys.Rejected, entries, func(r *Rejected) string { return r.text })
	return dropped, redis.Wrap(err, "drop rejected messages")
}

// LastRejected reads the reason of the message that was rejected last; empty: there is none or it cannot be read.
func (s Report) LastRejected(ctx context.Context) (string, error) {
	text, err := s.store.Clients.Read.LIndex(ctx, s.store.Keys.Rejected, -1).Result()
	return readRejected(text).Reason, redis.Wrap(redis.IgnoreMissing(err), "read the last rejected message")
}
