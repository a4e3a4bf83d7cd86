package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/worker"
)

// FetchOptions tunes Fetch. The zero value is usable.
type FetchOptions struct {
	// Client sends the requests. Its Timeout, if any, holds beside the deadline of the attempt. It is copied, and connects to
	// any address whatever AllowPrivate says. Defaults to a client that follows ten redirections.
	Client *http.Client
	// AllowHosts are the only hosts to ask, redirections included: names such as feeds.example.com, and *.example.com for all names
	// below one. Defaults to all.
	AllowHosts []string
	// AllowPrivate lets the default client connect to addresses of this machine, of private networks and of what else is not
	// the open internet, and use the proxy of the environment. Defaults to false: input_url comes from users.
	AllowPrivate bool
	// MaxBytes is the largest file that is accepted, after decompression. At least 1. Defaults to 1 GiB.
	MaxBytes int64
	// Stall is how long to wait for the response, and then the period in which enough of the body has to come. 10 ms to 1 h.
	// Defaults to 1 min.
	Stall time.Duration
	// LeastRate is how much of the body has to come in each of these periods, in bytes a second. At least 1. Defaults to 1,024.
	LeastRate int64
	// Revalidate is how long a server is believed that says that nothing has changed: then the whole is asked for. 1 h to 1 year. Defaults to a week.
	Revalidate time.Duration
	// UserAgent is how the worker calls itself. Defaults to refreshd and its address.
	UserAgent string
	// Header is sent with every request, but not on to another host by a redirection. Defaults to nothing.
	Header http.Header
	// IgnoreParams are parameters of the query, such as a signature that is new each time, that make an address no other one: its ETag and
	// Last-Modified are sent back whatever they are. Defaults to none.
	IgnoreParams []string
}

func (o FetchOptions) withDefaults() FetchOptions {
	o.MaxBytes = min(cmp.Or(o.MaxBytes, 1<<30), 1<<62)
	o.Stall = cmp.Or(o.Stall, time.Minute)
	o.LeastRate = cmp.Or(o.LeastRate, 1<<10)
	o.Revalidate = cmp.Or(o.Revalidate, 7*24*time.Hour)
	o.UserAgent = cmp.Or(o.UserAgent, "refreshd (+https://github.com/refreshd/refreshd)")
	return o
}

// Validate reports the first option out of range; 0 means the default.
func (o FetchOptions) Validate() error {
	o = o.withDefaults()
	switch {
	case o.MaxBytes < 1:
		return fmt.Errorf("max bytes: expected at least 1, found %d", o.MaxBytes)
	case o.Stall < 10*time.Millisecond || o.Stall > time.Hour:
		return fmt.Errorf("stall: expected 10ms to 1h, found %s", document.FormatDuration(o.Stall))
	case o.LeastRate < 1:
		return fmt.Errorf("least rate: expected at least 1 byte a second, found %d", o.LeastRate)
	case o.Revalidate < time.Hour || o.Revalidate > 365*24*time.Hour:
		return fmt.Errorf("revalidate: expected 1h to 365d, found %s", document.FormatDuration(o.Revalidate))
	default:
		return nil
	}
}

// Fetch returns a handler that downloads the payload's input_url, http or https, into a directory, which it creates. The file
// is named after the model, see below, and replaced in one step: readers see the old or the new one, whole, whatever fails.
//
// ETag and Last-Modified are kept in a hidden file beside it, where the next change of the feed is sure to change them. A server that answers 304 to them, or
// the same bytes again, counts as a success that found nothing new; it is not believed for longer than Revalidate. If a guard of the policy
// may withhold the result, it is asked before the file is replaced. The status reports the bytes during the download, and at its end also the
// rows of CSV, TSV or JSON lines (by type or name): records after the header, or lines.
//
// The address may come from users, so it leads to public addresses only, unless AllowPrivate says otherwise: this is checked of what the
// name resolves to, for each connection, redirections included. A URL that is refused as it is written is not retryable; a name that
// leads inside is reported like one that does not exist. The log of the pool has what owners must not see.
//
// Statuses are understood as by HTTP; a missing, invalid or refused (401, 403, 404, 410) input_url and a file above MaxBytes are
// not retryable and explained to the owner in plain words. A body that is cut off, or packed in a way that is not understood, is a failure
// and leaves the old file; so is a web page in place of data, unless the payload has "expect":"html", and a server that does not answer
// within Stall, or then sends less than LeastRate for as long.
//
// The name of the file is the uid, with %XX for everything but letters, digits and _-. ; a name above 150 bytes is cut and ends
// with a hash. The file of a model that is removed stays, and so does a hidden one with the fence of
// the attempt that has published last: a worker that was frozen meanwhile replaces nothing newer.
//
// The error says that the directory cannot be used or an option is out of range. Temporary files of killed workers are removed.
func Fetch(dir string, options FetchOptions) (worker.Handler, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	options = options.withDefaults()
	guard, err := newGuard(options.AllowHosts, options.AllowPrivate)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	options.Client = keepHeader(guard.client(options.Client), options.Header)
	if err := errors.Join(os.MkdirAll(dir, 0o755), removeLeftovers(dir)); err != nil {
		return nil, fmt.Errorf("fetch: prepare the directory: %w", err)
	}
	return (&fetcher{dir, guard, options}).fetch, nil
}

type fetcher struct {
	dir   string
	guard *guard
	FetchOptions
}

func (f *fetcher) fetch(ctx context.Context, attempt *worker.Attempt) error {
	source, err := inputURL(attempt.Payload)
	if err != nil {
		return err
	}
	if err := f.guard.check(source); err != nil {
		return fetchError(ctx, err)
	}
	watchdog := newWatchdog(ctx, f.Stall, f.LeastRate)
	defer watchdog.end()
	ctx = watchdog.ctx
	path := filepath.Join(f.dir, fileName(attempt.UID))
	identity := identityOf(source, f.IgnoreParams)
	known := readSidecar(path, identity.String())
	response, conditional, err := f.request(ctx, attempt, source, known.believed(attempt.Fence, f.Revalidate))
	if err != nil {
		return err
	}
	response.Body = watchdog.respond(response.Body)
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotModified && conditional:
		attempt.Unchanged()
		known.report(attempt)
		attempt.Status("Not changed", 100)
		return publish(ctx, path, attempt.Fence, func() error { return nil })
	case statusOf(response.StatusCode).file != succeeds:
		return f.refused(response, source)
	}
	return f.save(&download{ctx: ctx, attempt: attempt, source: identity, response: response, path: path, most: f.MaxBytes, known: known})
}

// fetchError is the failure of a request. If the guard refuses the address, only the owner can help; texts must not reveal inner addresses.
func fetchError(ctx context.Context, err error) error {
	if refused, is := errors.AsType[refusal](err); is {
		return ownersFault(fmt.Errorf("input_url: %w", refused), "forbidden_address", "The address of the feed is not allowed.")
	}
	return requestError(ctx, err)
}

// save replaces the file and its sidecar, and reports them.
func (f *fetcher) save(d *download) error {
	if d.response.ContentLength > d.most && d.response.Header.Get("Content-Encoding") == "" {
		return d.failure(errTooLarge)
	}
	if err := replaceBy(d.path, d.receive, d.publish); err != nil {
		return d.failure(err)
	}
	return nil
}

// inputURL reads where to fetch from. What is wrong with it only the owner can mend.
func inputURL(payload json.RawMessage) (*url.URL, error) {
	var fields struct {
		InputURL any `json:"input_url"`
	}
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, worker.NotRetryable(worker.ErrorType(errors.New("payload: expected a JSON object"), "input_url"))
	}
	text, ok := fields.InputURL.(string)
	if fields.InputURL == nil || ok && text == "" {
		err := errors.New("input_url: expected a URL, found nothing")
		return nil, ownersFault(err, "input_url", "No address of the feed (input_url) is set.")
	}
	parsed, err := checkURL(document.TrimAddress(text))
	if err != nil {
		return nil, ownersFault(fmt.Errorf("input_url: %w", err), "input_url", "The address of the feed is not a valid http or https address.")
	}
	return parsed, nil
}

// refused shows the owner of a feed the answer of its server, if the owner can do something about it.
func (f *fetcher) refused(response *http.Response, source *url.URL) error {
	code := response.StatusCode
	if len(f.Header) > 0 && (code == http.StatusUnauthorized || code == http.StatusForbidden) { // it may have refused the operator's own login
		return statusError(response, retried)
	}
	err := statusError(response, statusOf(code).file)
	text, found := map[int]string{
		http.StatusNotFound:     "The feed was not found (404): ",
		http.StatusGone:         "The feed is gone (410): ",
		http.StatusUnauthorized: "The feed asks for a login (401): ",
		http.StatusForbidden:    "Access to the feed was refused (403): ",
	}[code]
	if !found {
		return err
	}
	return worker.UserFriendly(err, text+document.Shorten(shown(source), 200))
}
