package handlers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/worker"
)

// statusError is the failure that a status means. With a Retry-After, a final failure is left to the policy: GitHub, for one, limits by 403.
func statusError(response *http.Response, meant outcome) error {
	code := response.StatusCode
	err := worker.ErrorType(fmt.Errorf("%d %s", code, http.StatusText(code)), fmt.Sprintf("http_%d", code))
	if meant == retried { // no owner hears of it
		err = worker.Retryable(worker.Reason(err, errUnreachable))
	}
	asked, found := backoff.RetryAfter(response.Header)
	switch {
	case found && !asked.Until.IsZero():
		return worker.ByServer(worker.RetryAt(err, asked.Until)) // an instant is left to the clock of Redis
	case found:
		return worker.ByServer(worker.RetryAfter(err, asked.Wait))
	case meant == fails:
		return worker.NotRetryable(err)
	default:
		return err
	}
}

// ownersFault is a failure without retry, in plain words for the owner.
func ownersFault(err error, kind, text string) error {
	return worker.NotRetryable(worker.ErrorType(worker.UserFriendly(err, text), kind))
}

// requestError is the failure of a request with no response or half of one. The texts of net/http have the whole URL, with its secrets.
func requestError(ctx context.Context, err error) error {
	if detailed, is := errors.AsType[*url.Error](err); is {
		err = detailed.Err
	}
	if strings.Contains(err.Error(), "Location header") {
		err = errors.New("the server redirects to what is no address") // which may hold a password
	}
	return stopped(ctx, worker.ErrorType(worker.Reason(err, unaddressed(err)), "network"))
}

const errUnreachable = "the host of the address cannot be reached"

// unaddressed is an error of the network for owners: without addresses, and silent about names that exist only inside.
func unaddressed(err error) string {
	if _, missing := errors.AsType[*net.DNSError](err); missing || errors.Is(err, errInside) {
		return errUnreachable
	}
	text := err.Error()
	for {
		operation, is := errors.AsType[*net.OpError](err)
		if !is {
			return text
		}
		err, text = operation.Err, operation.Err.Error()
	}
}

// stopped returns the cause of an ended context in place of err, which is then only its echo.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func checkURL(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" {
		return nil, errors.New("expected an http or https URL with a host")
	}
	// A zone of an IPv6 address with other letters than ASCII is read, and written in a form that is refused.
	if _, err := url.Parse(parsed.String()); err != nil {
		return nil, errors.New("expected a host that can be asked for")
	}
	return parsed, nil
}

func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
