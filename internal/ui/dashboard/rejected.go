package dashboard

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

var rejectedPage = page{path: "rejected", title: "Rejected", nav: true, file: "rejected", read: readRejected, live: []string{"rejected-list"}}

type rejections struct {
	Now          time.Time
	Groups       []operate.RejectedGroup
	Group        string // that is shown; "": all are
	Messages     []rejection
	Total        int
	Newer, Older string // where these pages begin; "": there are none
}

type rejection struct{ operate.Rejected }

const rejectedAPage = 25

func readRejected(ctx context.Context, req *request) (any, error) {
	now, err := req.now(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := req.operator.Rejected(ctx, "")
	if err != nil {
		return nil, err
	}
	page := &rejections{Now: now, Total: len(entries), Groups: operate.GroupRejected(entries), Group: req.get("group")}
	if page.Group != "" {
		entries = slices.DeleteFunc(entries, func(one operate.Rejected) bool { return one.Group() != page.Group })
	}
	all := redis.Map(entries, func(entry operate.Rejected) rejection { return rejection{entry} })
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b rejection) int { return strings.Compare(b.At, a.At) })
	from, _ := strconv.Atoi(req.get("from")) // other texts begin in front
	from = max(0, min(from, len(all)))
	to := min(len(all), from+rejectedAPage)
	page.Messages = all[from:to]
	if from > 0 {
		page.Newer = strconv.Itoa(max(0, from-rejectedAPage))
	}
	if to < len(all) {
		page.Older = strconv.Itoa(to)
	}
	return page, nil
}

// Several reports whether there is something to choose or to do together.
func (p *rejections) Several() bool { return p.Total > 1 || p.Group != "" }

// messageGroup changes all messages of a group.
func messageGroup(done string, change func(operate.Operator, context.Context, operate.Messages) (operate.Changed, error)) func(context.Context, *request) (outcome, error) {
	return func(ctx context.Context, req *request) (outcome, error) {
		changed, err := change(req.operator, ctx, operate.Messages{Group: req.get("group")})
		if err = errors.Join(append(changed.Refused, err)...); err != nil && changed.Done > 0 {
			err = fmt.Errorf("%s done; %w", words.Count(changed.Done, "message is", "messages are"), err)
		}
		return outcome{text: fmt.Sprintf(done, words.Count(changed.Done, "message is", "messages are"))}, err
	}
}

// Time is when it was rejected; zero: unknown.
func (r *rejection) Time() time.Time { return rejectedAt(r.At) }

func rejectedAt(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// At is the time of a group; zero: unknown.
func (*rejections) At(text string) time.Time { return rejectedAt(text) }

// Whole: it can be requeued.
func (r *rejection) Whole() bool {
	_, err := r.Message()
	return err == nil
}

// Text is the beginning of the message, made visible.
func (r *rejection) Text() string {
	raw := r.Raw
	if r.RawBase64 != "" {
		decoded, _ := base64.StdEncoding.DecodeString(r.RawBase64) // up to an error
		raw = string(decoded)
	}
	return visible(model.Masked(raw), 2000)
}

// visible replaces characters that do not print by their numbers, so that nothing hides or turns the direction of writing.
func visible(raw string, most int) string {
	rest := ""
	if len(raw) > most {
		raw, rest = raw[:most], fmt.Sprintf("… and %d bytes more", len(raw)-most)
	}
	quoted := strconv.QuoteToGraphic(raw)
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(quoted[1:len(quoted)-1]) + rest
}
