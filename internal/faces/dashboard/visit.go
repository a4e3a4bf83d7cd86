package dashboard

import (
	"context"
	"net/url"
	"time"
)

// visit is what somebody wants: to look at a page, or to do something.
type visit struct {
	*site

	query url.Values // of the address; of an action the fields of its form
	by    string     // who is said to want it
	clock func() time.Time
	plays chan struct{} // holds one for each simulation that runs
}

func (d *Dashboard) visit(site *site, query url.Values) *visit {
	return &visit{site: site, query: query, by: d.config.By, clock: d.config.Clock, plays: d.plays}
}

// get is the first value of a field; "": none.
func (v *visit) get(name string) string { return v.query.Get(name) }

// link is the address of a page, with fields in pairs of name and value. One without a value is left out.
func (s *site) link(path string, fields ...string) string {
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

type entryKey struct{}

func withEntry(ctx context.Context, how entry) context.Context {
	return context.WithValue(ctx, entryKey{}, how)
}

func entryOf(ctx context.Context) entry {
	how, _ := ctx.Value(entryKey{}).(entry)
	return how
}
