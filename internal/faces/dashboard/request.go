package dashboard

import (
	"context"
	"net/url"
	"time"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model/document"
)

// request asks for a page of a queue, or for an action.
type request struct {
	*site

	operator operate.Operator
	query    url.Values // of the address; of an action the fields of its form
	clock    func() time.Time
	plays    chan struct{} // holds one for each simulation that runs
}

func (d *Dashboard) newRequest(site *site, query url.Values) *request {
	return &request{site: site, operator: operate.Operator{Queue: site.queue, By: d.config.By}, query: query, clock: d.config.Clock, plays: d.plays}
}

// get is the first value of a field; "": none.
func (req *request) get(name string) string { return req.query.Get(name) }

// uid is the uid that an address or a form names.
func (req *request) uid() (string, error) {
	uid := req.get("uid")
	return uid, document.ValidateUID(uid)
}

// now is the time of the first part of the queue.
func (req *request) now(ctx context.Context) (time.Time, error) { return req.queue.Parts[0].Now(ctx) }

// Link is the address of a page, with fields in pairs of name and value. A field without a value is left out.
func (s *site) Link(path string, fields ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] != "" {
			query.Set(fields[i], fields[i+1])
		}
	}
	address := s.base + "/" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}
