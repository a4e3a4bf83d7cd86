package dashboard

import (
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

var formToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func TestPagesPicturesAndFilesAreCompressedForWhoAcceptsIt(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(failingModel)
	for _, path := range []string{home, home + "models", home + "steering", home + "model/next.svg?uid=a", "/static/style.css", "/static/page.js", "/nowhere"} {
		read := func(accept string) (*http.Response, string) {
			request := d.request("GET", path, nil)
			request.Header.Set("Accept-Encoding", accept)
			return d.ask(request)
		}
		for _, accept := range []string{"identity", "br", "gzip;q=0"} {
			response, _ := read(accept)
			failIf(t, response.Header.Get("Content-Encoding") != "", "%s: expected it as it is for %q, found %v", path, accept, response.Header)
		}
		plain, text := read("identity")
		response, packed := read("br;q=1.0, GZIP;q=0.8")
		failIf(t, response.Header.Get("Content-Encoding") != "gzip" || response.Header.Get("Vary") != "Accept-Encoding" || response.StatusCode != plain.StatusCode,
			"%s: expected gzip, found %s %v", path, response.Status, response.Header)
		zip := testkit.Got(gzip.NewReader(strings.NewReader(packed)))(t)
		unpacked := testkit.Got(io.ReadAll(zip))(t)
		equal(t, formToken.ReplaceAllString(text, ""), formToken.ReplaceAllString(string(unpacked), ""))
		failIf(t, len(packed) > len(text)/2 && len(text) > 2000, "%s: expected less than half of %d bytes, found %d", path, len(text), len(packed))
	}
}

func TestNoTextOfFormsIsTheSameOnTwoPages(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	seen := map[string]bool{}
	for range 3 {
		found := formToken.FindStringSubmatch(d.page(home + "steering"))
		failIf(t, seen[found[1]] || strings.Contains(found[1], d.dashboard.csrf), "expected another text on each page, found %s again", found[1])
		seen[found[1]] = true
		response, _ := d.ask(d.request("POST", home+"hold/put", map[string][]string{"csrf": {found[1]}, "all": {"yes"}, "reason": {"x"}}))
		failIf(t, response.StatusCode != 303, "expected each of them taken, found %s", response.Status)
	}
}
