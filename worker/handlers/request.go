package handlers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// ask requests a feed. A cache must ask the origin whether the feed has changed; it is bypassed for runs by hand and whole downloads. (squid asks
// the origin by a date of its own that says nothing within its second.)
func (f *fetcher) ask(ctx context.Context, attempt *worker.Attempt, source *url.URL, known validators) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source.String(), nil)
	if err != nil {
		return nil, worker.NotRetryable(fmt.Errorf("make the request: %w", err))
	}
	request.Header.Set("User-Agent", f.UserAgent)
	request.Header.Set("Accept", "*/*")
	request.Header.Set("Accept-Encoding", "gzip") // said by ourselves, so that all codings are taken off in one place
	request.Header.Set("Cache-Control", "max-age=0")
	if attempt.Purpose == model.ForRun || known == (validators{}) {
		request.Header.Set("Cache-Control", "no-cache")
	}
	for name, values := range f.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	known.ask(request.Header)
	response, err := f.Client.Do(request)
	if err != nil {
		return nil, fetchError(ctx, err)
	}
	return response, nil
}

// request asks for a feed, and once more without validators if the server refuses these or its 304 is about another version.
func (f *fetcher) request(ctx context.Context, attempt *worker.Attempt, source *url.URL, known validators) (response *http.Response, conditional bool, err error) {
	conditional = known != validators{}
	response, err = f.ask(ctx, attempt, source, known)
	if err != nil || !conditional {
		return response, false, err
	}
	refused := slices.Contains([]int{http.StatusBadRequest, http.StatusPreconditionFailed, http.StatusRequestHeaderFieldsTooLarge}, response.StatusCode)
	if refused || response.StatusCode == http.StatusNotModified && !known.confirmedBy(response) {
		_ = response.Body.Close()
		conditional = false
		response, err = f.ask(ctx, attempt, source, validators{})
	}
	return response, conditional, err
}

// keepHeader returns a client that sends a header only to the host of the first address. No host gets a Referer: there may be a password in the
// address.
func keepHeader(client *http.Client, header http.Header) *http.Client {
	kept := *client
	kept.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		first := via[0].URL
		next.Header.Del("Referer")
		if next.URL.Hostname() != first.Hostname() || first.Scheme == "https" && next.URL.Scheme != "https" {
			for name := range header {
				next.Header.Del(name)
			}
		}
		return client.CheckRedirect(next, via)
	}
	return &kept
}
