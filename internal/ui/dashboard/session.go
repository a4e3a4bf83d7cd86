package dashboard

import (
	"fmt"
	"net/http"
	"time"
)

// session is for whom a page is read or something is done.
type session struct {
	name     string // of the token; "": there is none
	by       string // for journal and history
	readOnly bool
	zone     *time.Location // that was chosen; nil: none
}

// tokenKey is that of the token in the context of a request.
type tokenKey struct{}

// session is that of a request that has passed signedIn.
func (d *Dashboard) session(r *http.Request) session {
	s := session{by: d.config.By, readOnly: d.config.ReadOnly, zone: chosenZone(r)}
	if token, signedIn := r.Context().Value(tokenKey{}).(*Token); signedIn {
		s.name, s.by, s.readOnly = token.Name, token.Name, s.readOnly || token.ReadOnly
	}
	return s
}

// key is the same for all who are shown the same.
func (s *session) key() string { return fmt.Sprint(s.readOnly, s.zone != nil, s.zone, " ") }

// setCookie keeps something in the browser, for pages of this dashboard alone; a negative age forgets it.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.Header.Get("X-Forwarded-Proto") == "https", // which a proxy in front speaks, this server never does
	})
}
