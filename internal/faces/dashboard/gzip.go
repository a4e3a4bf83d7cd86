package dashboard

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// zips are writers to be used again.
var zips = sync.Pool{New: func() any { zip, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return zip }} // a level that there is

// compressed sends pages, pictures and files in gzip to whoever accepts it. A stream is sent as it is: while it is open, it would keep a megabyte
// of tables.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !acceptsGzip(r.Header.Get("Accept-Encoding")) || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		zipped := &zipped{ResponseWriter: w}
		defer zipped.end()
		next.ServeHTTP(zipped, r)
	})
}

func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, quality, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(quality), "q="), 64)
			return err != nil || weight > 0
		}
	}
	return false
}

// zipped decides at the header of an answer whether its body is compressed.
type zipped struct {
	http.ResponseWriter
	zip   *gzip.Writer
	begun bool
}

// Unwrap lets a stream reach the connection.
func (z *zipped) Unwrap() http.ResponseWriter { return z.ResponseWriter }

func (z *zipped) WriteHeader(status int) {
	header := z.Header()
	if !z.begun && (status == http.StatusOK || status >= http.StatusBadRequest) && header.Get("Content-Type") != streamType {
		z.zip = zips.Get().(*gzip.Writer)
		z.zip.Reset(z.ResponseWriter)
		header.Set("Content-Encoding", "gzip")
		header.Del("Content-Length")
	}
	z.begun = true
	z.ResponseWriter.WriteHeader(status)
}

func (z *zipped) Write(text []byte) (int, error) {
	if !z.begun {
		z.WriteHeader(http.StatusOK)
	}
	if z.zip == nil {
		return z.ResponseWriter.Write(text)
	}
	return z.zip.Write(text)
}

func (z *zipped) end() {
	if z.zip != nil {
		_ = z.zip.Close() // the browser has gone
		zips.Put(z.zip)
	}
}
