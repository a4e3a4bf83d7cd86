package dashboard

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

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
		zip := check.Got(gzip.NewReader(strings.NewReader(packed)))(t)
		unpacked := check.Got(io.ReadAll(zip))(t)
		equal(t, text, string(unpacked))
		failIf(t, len(packed) > len(text)/2 && len(text) > 2000, "%s: expected less than half of %d bytes, found %d", path, len(text), len(packed))
	}
}
