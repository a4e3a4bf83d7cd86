package handlers

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/text/encoding/htmlindex"
)

// unpack takes the codings off a body that Content-Encoding names, the last first (RFC 9110, section 8.4). It reads the begin of the body.
func unpack(body io.Reader, header http.Header) (_ io.Reader, err error) {
	names := strings.FieldsFunc(strings.ToLower(strings.Join(header["Content-Encoding"], ",")), func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range slices.Backward(names) {
		packed := bufio.NewReader(body)
		start, _ := packed.Peek(2)   // an error comes again
		_, err = htmlindex.Get(name) // scripts that export CSV name its charset here, and stores what an upload said
		plain := err == nil || slices.Contains([]string{"identity", "none", "binary", "8bit", "aws-chunked"}, name)
		switch err = nil; {
		case len(names) > 3 || !plain && !slices.Contains([]string{"gzip", "x-gzip", "deflate"}, name):
			return nil, fmt.Errorf("expected at most three of gzip and deflate, found %.40q", strings.Join(names, ", "))
		case plain || len(start) == 0: // servers do not pack nothing
			body = packed
		case name != "deflate":
			body, err = gzip.NewReader(packed)
		case len(start) == 2 && start[0]&0x0f == 8 && (int(start[0])<<8|int(start[1]))%31 == 0: // RFC 1950, section 2.2
			body, err = zlib.NewReader(packed)
		default:
			body = flate.NewReader(packed) // raw, as old servers of Microsoft send it
		}
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}
