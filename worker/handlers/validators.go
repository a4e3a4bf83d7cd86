package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// validators identify the version of a feed (RFC 9110, section 8.8). Empty: none.
type validators struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	// From is the digest of the address behind all redirections, without its query, that has sent them: another one has versions of its own.
	From string `json:"from_sha256,omitempty"`
}

// validatorsOf are the reliable ones of a response. Within a second of Last-Modified the feed may change again under the same date (section
// 8.8.2.2), or under an ETag that is made of time and size. One more second is for file systems, whose clock lags by some milliseconds.
func validatorsOf(response *http.Response) validators {
	v := validatorsIn(response)
	modified, err := http.ParseTime(v.LastModified)
	date, noDate := http.ParseTime(response.Header.Get("Date"))
	if err != nil || noDate != nil || date.Sub(modified) < 2*time.Second {
		v.LastModified = ""
		if err == nil && tellsTime(v.ETag, modified) {
			v.ETag = ""
		}
	}
	if len(v.ETag) > 1<<10 { // servers refuse long headers
		v.ETag = ""
	}
	if v.ETag+v.LastModified == "" {
		return validators{}
	}
	return v
}

func validatorsIn(response *http.Response) validators {
	address := *response.Request.URL
	address.RawQuery = ""
	return validators{response.Header.Get("ETag"), response.Header.Get("Last-Modified"), digest(address.String())}
}

// confirmedBy reports whether a 304 is about the version that was asked for. Some servers look at the date alone, and think any older file unchanged.
func (v validators) confirmedBy(response *http.Response) bool {
	now := validatorsIn(response)
	if v.ETag != "" && now.ETag != "" {
		return opaque(v.ETag) == opaque(now.ETag)
	}
	return (v.From == "" || v.From == now.From) && (v.LastModified == "" || now.LastModified == "" || v.LastModified == now.LastModified)
}

// opaque is the common part of two ETags of the same version: caddy leaves its suffix out of a 304.
func opaque(etag string) string {
	return strings.TrimSuffix(strings.Trim(strings.TrimPrefix(etag, "W/"), `"`), "-gzip")
}

// tellsTime reports whether an ETag is made of a time: in seconds or parts of them, hexadecimal (nginx, Apache, busybox), decimal, or to the base
// of 36 (caddy).
func tellsTime(etag string, at time.Time) bool {
	if strings.Contains(etag, strconv.FormatInt(at.Unix(), 36)) {
		return true
	}
	parts := strings.FieldsFunc(etag, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) })
	for _, part := range parts {
		for _, base := range []int{10, 16} {
			n, err := strconv.ParseInt(part, base, 64)
			for scale := int64(1); err == nil && scale <= 1e9; scale *= 1000 {
				if n/scale == at.Unix() {
					return true
				}
			}
		}
	}
	return false
}

// ask makes a request conditional.
func (v validators) ask(header http.Header) {
	if plain, packed := strings.CutSuffix(v.ETag, `-gzip"`); packed { // Apache knows its own only without its suffix
		header.Set("If-None-Match", v.ETag+", "+plain+`"`)
	} else if v.ETag != "" {
		header.Set("If-None-Match", v.ETag)
	}
	if v.LastModified != "" {
		header.Set("If-Modified-Since", v.LastModified)
	}
}
