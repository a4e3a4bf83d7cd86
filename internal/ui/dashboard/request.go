package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/ui/playground"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

type request struct {
	*site

	session  session
	zone     *time.Location // of times on the page: the chosen one, or UTC. See zoneOf for the page of a model.
	operator operate.Operator
	query    url.Values // of the address; of an action the fields of its form
	clock    func() time.Time
	plays    chan struct{} // holds one for each simulation that runs
}

func (d *Dashboard) newRequest(site *site, session session, query url.Values) *request {
	return &request{site: site, session: session, zone: cmp.Or(session.zone, time.UTC), operator: operate.Operator{Queue: site.queue, By: session.by}, query: query, clock: d.config.Clock, plays: d.plays}
}

func (req *request) get(name string) string { return req.query.Get(name) }

func (req *request) uid() (string, error) {
	uid := req.get("uid")
	return uid, document.ValidateUID(uid)
}

// now is the time of the first part.
func (req *request) now(ctx context.Context) (time.Time, error) { return req.queue.Parts[0].Now(ctx) }

// Link is the address of a page, with fields in pairs of name and value. A field without a value is left out.
func (s *site) Link(path string, fields ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] != "" {
			query.Set(fields[i], fields[i+1])
		}
	}
	return s.address(path, query)
}

func (s *site) address(path string, query url.Values) string {
	address := s.base + "/" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// clock is an instant in a zone, which the page names; "": zero.
func clock(at time.Time, zone *time.Location) string {
	if at.IsZero() {
		return ""
	}
	return at.In(zone).Format(time.DateTime)
}

// distance is the rough distance of an instant. The browser updates it, see page.js.
func distance(at, now time.Time) string {
	away := at.Sub(now)
	length := words.Roughly(away.Abs())
	length = length[:strings.IndexAny(length, "wdhms")+1]
	switch {
	case away.Abs() < time.Minute && away <= 0:
		return "just now"
	case away.Abs() < time.Minute:
		return "in a moment"
	case away < 0:
		return length + " ago"
	default:
		return "in " + length
	}
}

const readTime = 20 * time.Second

// inWords is an error for people, on one line.
func inWords(err error) string {
	const notAllowed = "the Redis user of this dashboard may not do this. Ask who runs it for a user of the role operator. ("
	text := document.OneLine(hint.Add(err.Error(), err, hint.Dashboard))
	switch {
	case redis.Refused(err):
		return "Redis refused it: " + notAllowed + text + ")"
	case strings.Contains(text, "EXECABORT"): // Redis does not say why
		return "Redis refused it, and nothing was done: most likely " + notAllowed + text + ")"
	case errors.Is(err, context.DeadlineExceeded):
		return "Redis did not answer in time, and it is unknown what was done: look at the page again. (" + text + ")"
	default:
		return text
	}
}

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	_, refused := errors.AsType[*document.Error](err)
	switch {
	case errors.Is(err, playground.ErrNotStored), errors.Is(err, explain.ErrUnknownModel):
		return http.StatusNotFound
	case refused:
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}
