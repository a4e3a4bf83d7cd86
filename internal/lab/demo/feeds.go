package demo

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// feeds are the web pages that the models fetch, one for each way in which real ones fail. An answer depends on the number of requests, never on
// chance. Other paths, such as the path of uidGone, are 404.
type feeds struct {
	*http.ServeMux
	banner  chan struct{} // closed: the banner may be served; until then it hangs
	stopped chan struct{} // sent to when the slow feed has stopped halfway
}

func newFeeds() *feeds {
	f := &feeds{ServeMux: http.NewServeMux(), banner: make(chan struct{}), stopped: make(chan struct{}, 1)}
	for uid, serve := range map[string]func(http.ResponseWriter, *http.Request, int){
		uidSteady: f.steady, uidHangs: f.hang, uidSlow: f.slow,
		uidFlaky: func(w http.ResponseWriter, r *http.Request, hit int) {
			if hit%3 != 0 {
				http.Error(w, "the shop is being updated", http.StatusServiceUnavailable)
				return
			}
			f.steady(w, r, hit)
		},
		uidBusy: func(w http.ResponseWriter, r *http.Request, hit int) {
			if hit%2 == 1 {
				w.Header().Set("Retry-After", strconv.Itoa(int(busyFor/time.Second)))
				http.Error(w, "too many requests", http.StatusTooManyRequests)
				return
			}
			f.steady(w, r, hit)
		},
		uidUnchanged: func(w http.ResponseWriter, r *http.Request, _ int) { // there is one edition only
			w.Header().Set("ETag", unchangedTag)
			if r.Header.Get("If-None-Match") == unchangedTag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			f.steady(w, r, 0)
		},
		uidBanner: func(w http.ResponseWriter, r *http.Request, hit int) { // busy with the first edition until the second was saved
			select {
			case <-r.Context().Done():
			case <-f.banner:
				f.steady(w, r, hit)
			}
		},
	} {
		var hits atomic.Int64 // so far
		f.HandleFunc("GET "+path(uid), func(w http.ResponseWriter, r *http.Request) { serve(w, r, int(hits.Add(1))) })
	}
	return f
}

func (f *feeds) steady(w http.ResponseWriter, _ *http.Request, hit int) {
	w.Header().Set("Content-Type", "text/csv")
	fmt.Fprintf(w, "id,price\n1,%d\n2,%d\n", 100+hit, 200+hit)
}

// busyFor is the Retry-After of the busy feed.
const busyFor = 2 * time.Second

func (f *feeds) hang(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }

const (
	slowChunks = 8
	slowRows   = 2000                   // in one chunk
	slowPace   = 200 * time.Millisecond // between two chunks: the feed takes about a second and a half
)

// slow sends its rows in chunks, with a length, so that the reader knows its progress.
func (f *feeds) slow(w http.ResponseWriter, r *http.Request, hit int) {
	chunk := strings.Repeat(fmt.Sprintf("%d,100\n", hit), slowRows)
	w.Header().Set("Content-Length", strconv.Itoa(slowChunks*len(chunk)))
	ticker := time.NewTicker(slowPace)
	defer ticker.Stop()
	for i := range slowChunks {
		if hit == 2 && i == slowChunks/2 { // until the reader goes
			f.stopped <- struct{}{} // never waits: only one request gets stuck
			f.hang(w, r, hit)
			return
		}
		if _, err := w.Write([]byte(chunk)); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

const unchangedTag = `"edition-1"`
