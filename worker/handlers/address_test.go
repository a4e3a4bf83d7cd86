package handlers

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

func TestAFeedIsFetchedFromAnAddressAsItWasPasted(t *testing.T) {
	f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, table) }, FetchOptions{})
	for _, text := range []string{" " + f.url + "\r\n", "\ufeff<" + f.url + ">", "“" + f.url + "”", f.url + `\n`} {
		if m := f.fetch(t.Context(), text); m.Type != model.MessageSuccess {
			t.Errorf("%q: told %+v, want a success", text, m)
		}
	}
}

func TestParametersThatAreIgnoredMakeNoOtherAddress(t *testing.T) {
	ignore := []string{"token", "X-Amz-Signature"}
	for text, want := range map[string]string{
		"https://h/a?token=1":                 "https://h/a",
		"https://h/a?id=7&token=1&b=2":        "https://h/a?id=7&b=2",
		"https://h/a?X-Amz-Signature=1&b=":    "https://h/a?b=",
		"https://h/a?token":                   "https://h/a",
		"https://h/a?Token=1&x=token&%zz=tok": "https://h/a?Token=1&x=token&%zz=tok",
		"https://h/a":                         "https://h/a",
	} {
		source := check.Got(url.Parse(text))(t)
		if got := identityOf(source, ignore).String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		if got := identityOf(source, nil).String(); got != text {
			t.Errorf("%s: got %s, want it as it is when nothing is ignored", text, got)
		}
	}
}

func TestAFeedWhoseTokenRotatesIsNotDownloadedAgain(t *testing.T) {
	var tokens []string
	bodies := 0
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.URL.Query().Get("token"))
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		bodies++
		_, _ = io.WriteString(w, table)
	}, FetchOptions{IgnoreParams: []string{"token"}})
	f.expect(success, f.fetch(t.Context(), f.url+"?token=1"))
	f.expect(unchanged(), f.fetch(t.Context(), f.url+"?token=2"))
	f.expect(success, f.fetch(t.Context(), f.url+"?token=3&page=2"))
	check.Equal(t, []string{"1", "2", "3"}, tokens)
	if bodies != 2 {
		t.Errorf("got %d bodies, want one for each address", bodies)
	}
}
