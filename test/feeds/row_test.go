package feeds

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// row is the observation of a server.
type row struct {
	place     [2]int // in the table
	server    string
	sends     string // validators
	packed    string // the coding, for who asks for gzip
	unchanged bool   // whether the second download of what has not changed was answered by 304
	soon      bool   // whether --fetch gets what was written in the second of the Last-Modified
	later     bool   // likewise, of what was written long after
	note      string
}

// written is when the feeds were written that are old: longer ago than any server takes for just now.
var written = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// observe makes the row of a server, and fails the test where --fetch does not do what it promises.
func observe(t *testing.T, s *server, i installation) (r row) {
	site := newSite(t)
	s.start(site, i)
	patience := 5 * time.Second
	if s.stale {
		patience = 0
	}
	headers := site.ask(t, s)
	r = row{server: s.called(s.numbered(t, i, headers)), sends: validators(headers), packed: headers.Get("Content-Encoding"), note: s.note}
	r.soon = site.noticesYoung(patience)
	f := site.feed("old.csv")
	site.write(f.name, table(1), written)
	f.fetch()
	failIf(t, !f.holds(table(1)), "want the feed, got another file")
	r.unchanged = f.fetch() == notChanged
	site.write(f.name, table(2), time.Time{})
	r.later = f.notices(table(2), patience)
	r.check(t, s)
	return r
}

// notChanged is the status of an attempt that was answered by 304.
const notChanged = "Not changed"

func (r *row) check(t *testing.T, s *server) {
	t.Helper()
	failIf(t, r.soon == s.stale, "rewritten in the second of its Last-Modified: want noticed: %t, got %t", !s.stale, r.soon)
	failIf(t, r.later == s.stale, "rewritten later: want noticed: %t, got %t", !s.stale, r.later)
	failIf(t, r.unchanged == s.whole, "unchanged: want a 304: %t, got %t", !s.whole, r.unchanged)
}

// ask asks for a feed as a browser does, and returns the headers.
func (s *site) ask(t *testing.T, of *server) http.Header {
	s.write("asked.csv", table(1), written)
	request := check.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+"/asked.csv", nil))(t)
	request.Header.Set("Accept-Encoding", "gzip") // which also keeps the client from unpacking
	response := check.Got(http.DefaultClient.Do(request))(t)
	_, err := io.Copy(io.Discard, response.Body)
	must(t, err)
	must(t, response.Body.Close())
	stopIf(t, response.StatusCode != http.StatusOK, "%s: want 200, got %s", of.name, response.Status)
	return response.Header
}

// validators are the means of asking for a response again. Of a hash the begin is enough.
func validators(headers http.Header) string {
	var sends []string
	if tag := headers.Get("ETag"); len(tag) > 32 {
		sends = append(sends, "`"+tag[:12]+`…"`+"`")
	} else if tag != "" {
		sends = append(sends, "`"+tag+"`")
	}
	if headers.Get("Last-Modified") != "" {
		sends = append(sends, "date")
	}
	if sends == nil {
		return "nothing"
	}
	return strings.Join(sends, ", ")
}

// noticesYoung reports whether it is noticed that a feed is written anew in the second in which it was written and fetched. Where the clock does not
// allow that, it tries again with another feed.
func (s *site) noticesYoung(patience time.Duration) bool {
	for try := range 50 {
		f := s.feed(fmt.Sprintf("young-%d.csv", try))
		s.write(f.name, table(1), time.Time{})
		second := s.second(f.name)
		f.fetch()
		s.write(f.name, table(2), time.Time{})
		if s.second(f.name).Equal(second) {
			return f.notices(table(2), patience)
		}
	}
	s.Fatal("want a feed written twice in a second, the machine is too busy")
	return false
}
