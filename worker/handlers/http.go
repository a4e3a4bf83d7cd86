package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/worker"
)

// HTTPOptions tunes HTTP. The zero value is usable.
type HTTPOptions struct {
	// Client sends the requests; it is copied, and redirections are never followed. Its Timeout, if any, holds beside the
	// deadline of the attempt. Defaults to a client of the standard library.
	Client *http.Client
	// Header is sent with every request, such as Authorization. Defaults to nothing.
	Header http.Header
}

// HTTP returns a handler that POSTs the payload of every attempt, a JSON object, to a URL. The attempt is in the headers
// Refreshd-Uid, Refreshd-Attempt-Uid, Refreshd-Attempt-No and Refreshd-Deadline-At, and in Traceparent if it is traced. The status is the result:
// 2xx is a success, which with the JSON body {"changed":false} found nothing new, as does 304; docs/worker.md has a table of the others.
// Redirections are not followed, because they would lose the payload.
//
// A failure may explain itself with the JSON body {"reason":"…","user_friendly_reason":"…"}; its error type is as in http_503,
// or network when there was no response. Retry-After, in seconds or as a date, is respected up to the max_retry_after of the policy.
// When the connection ends, the attempt is over: the service should stop.
//
// The error says that the URL is not one.
func HTTP(address string, options HTTPOptions) (worker.Handler, error) {
	target, err := checkURL(address)
	if err != nil {
		return nil, fmt.Errorf("http: %w, found %s", err, document.Found(address))
	}
	var client http.Client
	if options.Client != nil {
		client = *options.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(ctx context.Context, attempt *worker.Attempt) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(attempt.Payload))
		if err != nil {
			return worker.NotRetryable(fmt.Errorf("make the request: %w", err))
		}
		for name, values := range options.Header {
			request.Header[http.CanonicalHeaderKey(name)] = values
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Refreshd-Uid", attempt.UID)
		request.Header.Set("Refreshd-Attempt-Uid", attempt.AttemptUID)
		request.Header.Set("Refreshd-Attempt-No", strconv.Itoa(attempt.AttemptNo))
		request.Header.Set("Refreshd-Deadline-At", model.FormatTime(attempt.DeadlineAt))
		if attempt.Traceparent != "" {
			request.Header.Set("Traceparent", attempt.Traceparent)
		}
		response, err := client.Do(request)
		if err != nil {
			return requestError(ctx, err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(io.TeeReader(io.LimitReader(response.Body, 64<<10), &tail{attempt: attempt}))
		if err != nil {
			return requestError(ctx, fmt.Errorf("read the reply: %w", err))
		}
		return result(attempt, response, body)
	}, nil
}

// result reads status and body. A body that is not the JSON expected says nothing.
func result(attempt *worker.Attempt, response *http.Response, body []byte) error {
	var reply struct {
		Changed            *bool  `json:"changed"`
		Reason             string `json:"reason"`
		UserFriendlyReason string `json:"user_friendly_reason"`
	}
	if json.Unmarshal(body, &reply) != nil {
		reply.Changed, reply.Reason, reply.UserFriendlyReason = nil, "", ""
	}
	readMetrics(attempt, body)
	meant := statusOf(response.StatusCode).http
	switch {
	case meant == foundNothing, meant == succeeds && reply.Changed != nil && !*reply.Changed:
		attempt.Unchanged()
		return nil
	case meant == succeeds:
		return nil
	}
	err := statusError(response, meant)
	if meant == retried { // the service did not write the reply
		return err
	}
	if reply.Reason != "" {
		err = fmt.Errorf("%w: %s", err, reply.Reason)
	}
	if reply.UserFriendlyReason != "" {
		err = worker.UserFriendly(err, reply.UserFriendlyReason)
	}
	return err
}
