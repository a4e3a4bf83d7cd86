package demo

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// site serves feeds until the test ends.
func site(t *testing.T) (*feeds, *httptest.Server) {
	t.Helper()
	f := newFeeds(time.Millisecond)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server
}

func get(t *testing.T, server *httptest.Server, path, etag string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestFeedAnswersDependOnlyOnTheNumberOfRequests(t *testing.T) {
	tests := map[string][]int{
		path(uidSteady): {200, 200, 200},
		path(uidFlaky):  {503, 503, 200, 503, 503, 200},
		path(uidBusy):   {429, 200, 429, 200},
		path(uidGone):   {404, 404, 404},
	}
	for feed, want := range tests {
		t.Run(feed, func(t *testing.T) {
			_, server := site(t)
			var got []int
			for range want {
				response, _ := get(t, server, feed, "")
				got = append(got, response.StatusCode)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSteadyFeedIsNewEachTime(t *testing.T) {
	_, server := site(t)
	_, first := get(t, server, path(uidSteady), "")
	_, second := get(t, server, path(uidSteady), "")
	if first == second || !strings.HasPrefix(first, "id,price\n") {
		t.Errorf("two answers were %q and %q, want two different tables", first, second)
	}
}

func TestBusyFeedSaysWhenToComeBack(t *testing.T) {
	_, server := site(t)
	response, _ := get(t, server, path(uidBusy), "")
	if got := response.Header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After = %q, want 2", got)
	}
}

func TestSlowFeedTellsItsLengthInAdvance(t *testing.T) {
	_, server := site(t)
	response, body := get(t, server, path(uidSlow), "")
	if rows := strings.Count(body, "\n"); response.ContentLength != int64(len(body)) || rows != slowChunks*slowRows {
		t.Errorf("announced %d bytes, sent %d with %d rows; want %d rows", response.ContentLength, len(body), rows, slowChunks*slowRows)
	}
}

func TestSlowFeedStopsHalfwayAtOneRequestOnly(t *testing.T) {
	for hit, want := range map[int]int{1: slowChunks, stuck: slowChunks / 2, stuck + 1: slowChunks} {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			f, answer, gone := newFeeds(slowPace), httptest.NewRecorder(), make(chan struct{})
			go func() {
				defer close(gone)
				f.slow(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, path(uidSlow), nil), hit)
			}()
			<-time.After(time.Hour) // of the bubble's clock
			leave()
			<-gone
			if rows := strings.Count(answer.Body.String(), "\n"); rows != want*slowRows {
				t.Errorf("request %d brought %d rows within an hour, want %d", hit, rows, want*slowRows)
			}
			if sent := len(f.stopped) == 1; sent != (hit == stuck) {
				t.Errorf("request %d sent that the feed has stopped: %t", hit, sent)
			}
		})
	}
}

func TestUnchangedFeedSendsItsTableOnlyOnce(t *testing.T) {
	_, server := site(t)
	response, body := get(t, server, path(uidUnchanged), "")
	tag := response.Header.Get("ETag")
	if response.StatusCode != 200 || body == "" || tag == "" {
		t.Fatalf("first answer: %d, %q, ETag %q; want a table with a tag", response.StatusCode, body, tag)
	}
	if response, body := get(t, server, path(uidUnchanged), tag); response.StatusCode != 304 || body != "" {
		t.Errorf("second answer: %d, %q; want 304 and nothing", response.StatusCode, body)
	}
}

func TestHangingFeedsEndWithTheirVisitor(t *testing.T) {
	for _, feed := range []string{path(uidHangs), path(uidBanner)} {
		t.Run(feed, func(t *testing.T) {
			f := newFeeds(time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, feed, nil))
			}()
			cancel()
			<-gone
		})
	}
}

func TestBannerIsServedWhenItIsReleased(t *testing.T) {
	f, server := site(t)
	f.releaseBanner()
	if response, body := get(t, server, path(uidBanner), ""); response.StatusCode != 200 || body == "" {
		t.Errorf("answer: %d, %q; want a table", response.StatusCode, body)
	}
}
