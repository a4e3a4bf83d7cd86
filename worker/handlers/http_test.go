package handlers

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func ownClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func post(t *testing.T, url string) worker.Handler {
	t.Helper()
	handler, err := HTTP(url, HTTPOptions{Client: ownClient(t), Header: http.Header{"authorization": {"Bearer x"}}})
	must(t, err)
	return handler
}

func TestAServiceGetsThePayloadAndTheAttempt(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := map[string]string{"method": r.Method, "path": r.URL.String(), "body": string(body)}
		for _, name := range []string{"Content-Type", "Authorization", "Refreshd-Uid", "Refreshd-Attempt-Uid", "Refreshd-Attempt-No", "Refreshd-Deadline-At"} {
			got[name] = r.Header.Get(name)
		}
		want := map[string]string{
			"method": "POST", "path": "/refresh?x=1", "body": `{"input_url":"http://x/?a=1&b=2"}`,
			"Content-Type": "application/json", "Authorization": "Bearer x", "Refreshd-Uid": "m", "Refreshd-Attempt-Uid": "a1",
			"Refreshd-Attempt-No": "2", "Refreshd-Deadline-At": "2026-11-21T07:00:00.000Z",
		}
		equal(t, want, got, whole)
		w.WriteHeader(http.StatusNoContent)
	})
	must(t, post(t, url+"/refresh?x=1")(t.Context(), example()))
}

func TestTheHTTPStatusMakesTheResult(t *testing.T) {
	no, yes := false, true
	success := model.Message{Type: model.MessageSuccess}
	unchanged := model.Message{Type: model.MessageSuccess, Changed: &no}
	failure := func(reason, kind string) model.Message {
		return model.Message{Type: model.MessageFailure, Failure: policy.Failure{Reason: reason, ErrorType: kind}}
	}
	final := func(m model.Message) model.Message { m.Retryable = &no; return m }
	after := func(m model.Message, d time.Duration) model.Message { m.RetryAfter, m.ByServer = d, true; return m }
	friendly := func(m model.Message, text string) model.Message { m.UserFriendlyReason = text; return m }
	at := func(m model.Message, at time.Time) model.Message { m.RetryAt, m.ByServer = at, true; return m }
	refused := func(text string) model.Message { m := failure(text, "http_407"); m.Retryable = &yes; return m }
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		want   model.Message
	}{
		"200":                        {200, nil, "", success},
		"202":                        {202, nil, `{"changed":true}`, success},
		"unchanged":                  {200, nil, ` {"changed":false}`, unchanged},
		"no JSON":                    {200, nil, `{"changed":false`, success},
		"another kind of value":      {200, nil, `{"changed":"false"}`, success},
		"metrics of another kind":    {200, nil, `{"changed":false,"metrics":["3s"]}`, unchanged},
		"explained, with metrics":    {500, nil, `{"reason":"row 7","metrics":7}`, failure("500 Internal Server Error: row 7", "http_500")},
		"one number is a text":       {200, nil, `{"changed":false,"metrics":{"rows":51,"took":"3s","far":1e400}}`, func(m model.Message) model.Message { m.Metrics = map[string]float64{"rows": 51}; return m }(unchanged)},
		"304":                        {304, nil, "", unchanged},
		"302":                        {302, map[string]string{"Location": "/elsewhere"}, "", failure("302 Found", "http_302")},
		"307":                        {307, map[string]string{"Location": "/elsewhere"}, "", failure("307 Temporary Redirect", "http_307")},
		"400":                        {400, nil, "", final(failure("400 Bad Request", "http_400"))},
		"404":                        {404, nil, "", final(failure("404 Not Found", "http_404"))},
		"408":                        {408, nil, "", failure("408 Request Timeout", "http_408")},
		"403 after seconds":          {403, map[string]string{"Retry-After": "60"}, "", after(failure("403 Forbidden", "http_403"), time.Minute)},
		"403 at once":                {403, map[string]string{"Retry-After": "0"}, "", after(failure("403 Forbidden", "http_403"), 0)},
		"403 after nonsense":         {403, map[string]string{"Retry-After": "-1"}, "", final(failure("403 Forbidden", "http_403"))},
		"407":                        {407, nil, `{"reason":"proxy","user_friendly_reason":"Pay the proxy."}`, refused("the host of the address cannot be reached")},
		"407 after seconds":          {407, map[string]string{"Retry-After": "60"}, "", after(refused("the host of the address cannot be reached"), time.Minute)},
		"409":                        {409, nil, "", failure("409 Conflict", "http_409")},
		"500":                        {500, nil, "", failure("500 Internal Server Error", "http_500")},
		"599":                        {599, nil, "", failure("599 ", "http_599")},
		"503 after seconds":          {503, map[string]string{"Retry-After": "120"}, "", after(failure("503 Service Unavailable", "http_503"), 2*time.Minute)},
		"429 after seconds":          {429, map[string]string{"Retry-After": "1"}, "", after(failure("429 Too Many Requests", "http_429"), time.Second)},
		"429 without":                {429, nil, "", failure("429 Too Many Requests", "http_429")},
		"429 after a date":           {429, map[string]string{"Retry-After": "Sat, 21 Nov 2026 07:01:30 GMT", "Date": "Sat, 21 Nov 2026 07:00:00 GMT"}, "", after(failure("429 Too Many Requests", "http_429"), 90*time.Second)},
		"429 after a past date":      {429, map[string]string{"Retry-After": "Sat, 21 Nov 2026 07:00:00 GMT", "Date": "Sat, 21 Nov 2026 07:01:30 GMT"}, "", after(failure("429 Too Many Requests", "http_429"), 0)},
		"429 after a date, no clock": {429, map[string]string{"Retry-After": "Sat, 21 Nov 2026 07:01:30 GMT", "Date": "-"}, "", at(failure("429 Too Many Requests", "http_429"), time.Date(2026, 11, 21, 7, 1, 30, 0, time.UTC))},
		"429 after nonsense":         {429, map[string]string{"Retry-After": "soon"}, "", failure("429 Too Many Requests", "http_429")},
		"429 after ages":             {429, map[string]string{"Retry-After": "9223372036854775807"}, "", after(failure("429 Too Many Requests", "http_429"), worker.MaxWait)},
		"explained": {422, nil, `{"reason":"row 7","user_friendly_reason":"Row 7 is odd."}`,
			friendly(final(failure("422 Unprocessable Entity: row 7", "http_422")), "Row 7 is odd.")},
		"a page": {500, nil, "<html>", failure("500 Internal Server Error", "http_500")},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				failIf(t, r.URL.Path != "/", "followed to %s", r.URL)
				for name, value := range c.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, got := try(t.Context(), t, post(t, url+"/"), example())
			equal(t, c.want, got, whole)
		})
	}
}

func TestAReplyWithoutEndIsReadOnlyAtItsBegin(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<10))
		}
	})
	must(t, post(t, url)(t.Context(), example()))
}

func TestNoResponseIsAFailureThatKeepsSecrets(t *testing.T) {
	listener := check.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = listener.Close()
	_, m := try(t.Context(), t, post(t, "http://user:pass@"+listener.Addr().String()+"/?token=secret"), example())
	failIf(t, m.Type != model.MessageFailure || m.ErrorType != "network" || m.Retryable != nil, "told %+v", m)
	for _, secret := range []string{"pass", "secret"} {
		failIf(t, strings.Contains(m.Reason, secret), "the reason tells a secret: %s", m.Reason)
	}
}

func TestARequestEndsWithTheContext(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has gone
		close(began)
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	result := make(chan error, 1)
	handler := post(t, url)
	go func() { result <- handler(ctx, example()) }()
	check.Await(t, began, "the request")
	cancel(worker.ErrDeadline)
	err := check.Await(t, result, "the end of the handler")
	failIf(t, !errors.Is(err, worker.ErrDeadline), "got %v, want worker.ErrDeadline", err)
	check.Await(t, ended, "the end of the request")
}

func TestAnAddressThatIsNoneIsRefused(t *testing.T) {
	for _, address := range []string{"", "localhost:80", "ftp://x/", "http://", "http://%zz/", "file:///etc/passwd"} {
		_, err := HTTP(address, HTTPOptions{})
		failIf(t, err == nil, "%q: expected an error", address)
	}
}

func TestTheClientOfTheCallerIsNotChanged(t *testing.T) {
	client := &http.Client{}
	_, err := HTTP("http://x/", HTTPOptions{Client: client})
	failIf(t, err != nil || client.CheckRedirect != nil, "err %v, or the client was changed", err)
}

func TestAClientOfOnesOwnAsksAndWithoutOneThatOfTheLibrary(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	transport := &asked{RoundTripper: ownClient(t).Transport}
	for _, client := range []*http.Client{{Transport: transport}, nil} {
		must(t, check.Got(HTTP(url, HTTPOptions{Client: client}))(t)(t.Context(), example()))
	}
	http.DefaultClient.CloseIdleConnections()
	failIf(t, transport.request == nil, "want the request sent by the client that was given")
}
