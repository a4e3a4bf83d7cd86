package dashboard

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// session is for whom a page is read or something is done.
type session struct {
	name     string // of the token; "": there is none
	by       string // for journal and history
	readOnly bool
	program  bool           // it has shown the token itself, so that no other site can misuse it
	csrf     string         // stands in the forms of one page
	zone     *time.Location // that was chosen; nil: none
}

type sessionKey struct{}

func (d *Dashboard) sessionOf(token *Token, program bool) session {
	return session{name: token.Name, by: token.Name, readOnly: token.ReadOnly || d.config.ReadOnly, program: program}
}

// session is that of a request that has passed signedIn.
func (d *Dashboard) session(r *http.Request) session {
	s, signedIn := r.Context().Value(sessionKey{}).(session)
	if !signedIn {
		s = session{by: d.config.By, readOnly: d.config.ReadOnly}
	}
	s.zone, s.csrf = chosenZone(r), d.formToken()
	return s
}

// key is the same for all who are shown the same.
func (s *session) key() string { return fmt.Sprint(s.readOnly, s.zone != nil, s.zone, " ") }

// formToken is another text for each page, as what is the same in many compressed pages can be guessed by their lengths.
func (d *Dashboard) formToken() string {
	text := rand.Text()
	return text + "." + sign(d.csrf, text)
}

func (d *Dashboard) isFormToken(token string) bool {
	text, signature, _ := strings.Cut(token, ".")
	return sameText(signature, sign(d.csrf, text))
}
