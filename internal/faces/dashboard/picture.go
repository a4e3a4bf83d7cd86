package dashboard

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// picture is an SVG that a page shows with <img>, under an address of its own.
type picture struct {
	path string // below the base of the queue
	draw func(ctx context.Context, req *request, w io.Writer) error
}

// pictures are all of them.
var pictures = []picture{{"model/past.svg", drawPast}, {"model/next.svg", drawNext}}

// policyOfPicture lets a picture use its own style sheet, and nothing else in the world.
const policyOfPicture = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"

func (d *Dashboard) draw(w http.ResponseWriter, r *http.Request, site *site, picture *picture) {
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	var text bytes.Buffer
	if err := picture.draw(ctx, d.newRequest(site, r.URL.Query()), &text); err != nil {
		http.Error(w, inWords(err), statusOf(err))
		return
	}
	w.Header().Set("Content-Security-Policy", policyOfPicture)
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(text.Bytes()) // the browser has gone
}
