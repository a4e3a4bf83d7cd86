package dashboard

import (
	"fmt"
	"net/http"
	"time"
)

// session is the user of a request.
type session struct {
	name     string // of the token; "": there is none
	by       string // for journal and history
	readOnly bool
	zone     *time.Location // that was chosen; nil: none
}

type tokenKey struct{}

// session returns that of a request that has passed signedIn.
func (d *Dashboard) session(r *http.Request) session {
	s := session{by: d.config.By, readOnly: d.config.ReadOnly, zone: chosenZone(r)}
	if token, signedIn := r.Context().Value(tokenKey{}).(*Token); signedIn {
		s.name, s.by, s.readOnly = token.Name, token.Name, s.readOnly || token.ReadOnly
	}
	return s
}

// key is equal for sessions that see the same.
func (s *session) key() string { return fmt.Sprint(s.readOnly, s.zone != nil, s.zone, " ") }

// setCookie keeps a value in the browser, for this dashboard only; a negative age forgets it.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.Header.Get("X-Forwarded-Proto") == "https", // which a proxy in front speaks, this server never does
	})
}
