package notifier

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
)

// webhook posts messages by Standard Webhooks: https://www.standardwebhooks.com.
type webhook struct {
	url    string
	secret []byte
	client *http.Client
}

// parseSecret reads a secret of Standard Webhooks.
func parseSecret(text string) ([]byte, error) {
	encoded, is := strings.CutPrefix(text, "whsec_")
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !is || err != nil || len(secret) < 16 {
		return nil, errors.New("expected whsec_ and at least 16 bytes in base64") // without the secret
	}
	return secret, nil
}

// sign signs a body.
func sign(secret []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body) // a hash takes everything
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (w *webhook) send(ctx context.Context, m message) error {
	payload := struct {
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
		Data      any    `json:"data"`
	}{"digest", m.at.UTC().Format(time.RFC3339), map[string]any{"count": len(m.notices), "notices": m.notices}}
	if len(m.notices) == 1 {
		payload.Type, payload.Timestamp, payload.Data = m.notices[0][fieldEvent], m.notices[0][fieldAt], m.notices[0]
	}
	body, _ := json.Marshal(payload) // texts and numbers only
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "refreshd")
	request.Header.Set("Webhook-Id", m.id())
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(m.at.Unix(), 10))
	request.Header.Set("Webhook-Signature", sign(w.secret, m.id(), m.at, body))
	answer, err := w.client.Do(request)
	if failed, is := errors.AsType[*url.Error](err); is {
		return failed.Err // without the URL, which may hold a secret
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection may serve again
	err = judge(answer.StatusCode)
	asked, found := backoff.RetryAfter(answer.Header)
	if _, final := errors.AsType[finalError](err); err == nil || final || !found {
		return err
	}
	return retryAfterError{err, asked}
}

// judge reads a status. One that blames the request is final, unless it is about its size or time.
func judge(status int) error {
	if status >= 200 && status < 300 {
		return nil
	}
	err := fmt.Errorf("HTTP %d", status)
	if status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}, status) {
		return err
	}
	return finalError{err}
}

// finalError: no further try would deliver a message.
type finalError struct{ error }

// retryAfterError has the time of the next try.
type retryAfterError struct {
	error
	asked backoff.Asked
}
