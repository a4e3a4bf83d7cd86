package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	sessionCookie = "refreshd_dashboard"
	sessionTime   = 12 * time.Hour

	mostTries    = 10   // wrong tokens of one address in a tryWindow
	mostTriesAll = 1000 // of all addresses
	tryWindow    = time.Minute
)

// door knows who may look.
type door struct {
	token string // "": everybody
	clock func() time.Time

	mu    sync.Mutex
	since time.Time      // guarded by mu: when the window began
	wrong map[string]int // guarded by mu: wrong tokens by address
	all   int            // guarded by mu
}

func newDoor(token string, clock func() time.Time) door { return door{token: token, clock: clock} }

// entry is how somebody came in.
type entry int

const (
	stranger entry = iota
	byCookie       // or as nobody is asked
	byBearer       // a program, which no site can make use of
)

// who asks how a request comes in; false: too many have tried.
func (d *door) who(r *http.Request) (entry, bool) {
	if d.token == "" {
		return byCookie, true
	}
	if token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is {
		right, may := d.try(r, token)
		if right {
			return byBearer, true
		}
		return stranger, may
	}
	if cookie, err := r.Cookie(sessionCookie); err == nil && d.isSession(cookie.Value) {
		return byCookie, true
	}
	return stranger, true
}

// try compares a token; false, false: there were too many tries from there.
func (d *door) try(r *http.Request, token string) (right, may bool) {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.clock(); now.Sub(d.since) >= tryWindow {
		d.since, d.wrong, d.all = now, map[string]int{}, 0
	}
	if d.wrong[address] >= mostTries || d.all >= mostTriesAll {
		return false, false
	}
	if sameText(d.sign("token"+token), d.sign("token"+d.token)) {
		return true, true
	}
	d.wrong[address]++
	d.all++
	return false, true
}

// session is a text that only this token makes.
func (d *door) session() string {
	ends := strconv.FormatInt(d.clock().Add(sessionTime).Unix(), 10)
	return ends + "." + d.sign("session"+ends)
}

func (d *door) isSession(text string) bool {
	ends, signature, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(ends, 10, 64)
	return err == nil && sameText(signature, d.sign("session"+ends)) && d.clock().Before(time.Unix(seconds, 0))
}

func (d *door) sign(text string) string {
	mac := hmac.New(sha256.New, []byte(d.token))
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// signedIn lets nobody pass whom the door does not know, except to the way in and what its page needs.
func (d *Dashboard) signedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		how, may := d.door.who(r)
		switch {
		case !may:
			tooMany(w)
		case how != stranger:
			next.ServeHTTP(w, r.WithContext(withEntry(r.Context(), how)))
		case r.URL.Path == "/login" || strings.HasPrefix(r.URL.Path, "/static/"):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
			http.Redirect(w, r, "/login", http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "expected the token of the dashboard, as Authorization: Bearer TOKEN or by /login", http.StatusUnauthorized)
		}
	})
}

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", strconv.Itoa(int(tryWindow.Seconds())))
	http.Error(w, "too many wrong tokens: wait a minute", http.StatusTooManyRequests)
}

// login shows the form, and takes what it sends.
func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	if d.config.Token == "" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	shown, status := frame{Title: "Sign in"}, http.StatusOK
	if r.Method == http.MethodPost {
		right, may := d.door.try(r, r.PostFormValue("token"))
		if right {
			d.setSession(w, r, d.door.session(), int(sessionTime.Seconds()))
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		if !may {
			tooMany(w)
			return
		}
		shown.Problem, status = "This is not the token of the dashboard.", http.StatusForbidden
	}
	d.render(w, status, "login", &shown)
}

func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	d.setSession(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (d *Dashboard) setSession(w http.ResponseWriter, r *http.Request, text string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: text, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.Header.Get("X-Forwarded-Proto") == "https", // a proxy in front speaks TLS, this server never does
	})
}
