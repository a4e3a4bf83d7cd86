package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
	token   string // "": everybody
	clock   func() time.Time
	proxies []netip.Prefix

	mu    sync.Mutex
	since time.Time            // guarded by mu: when the window began
	wrong map[string]int       // guarded by mu: wrong tokens by address
	all   int                  // guarded by mu
	ended map[string]time.Time // guarded by mu: sessions that were ended, until they would have ended by themselves
}

// client is the address of who sends a request: the last one that no trusted proxy has.
func (d *door) client(r *http.Request) string {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, next := range slices.Backward(forwarded) {
		if !d.isProxy(address) || strings.TrimSpace(next) == "" {
			break
		}
		address = strings.TrimSpace(next)
	}
	return address
}

func (d *door) isProxy(address string) bool {
	is, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(d.proxies, func(p netip.Prefix) bool { return p.Contains(is.Unmap()) })
}

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

// try compares a token; false, false: there were too many wrong ones from there. The right one is never refused.
func (d *door) try(r *http.Request, token string) (right, may bool) {
	if sameText(d.sign("token"+token), d.sign("token"+d.token)) {
		return true, true
	}
	address := d.client(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.clock(); now.Sub(d.since) >= tryWindow {
		d.since, d.wrong, d.all = now, map[string]int{}, 0
	}
	if d.wrong[address] >= mostTries || d.all >= mostTriesAll {
		return false, false
	}
	d.wrong[address]++
	d.all++
	return false, true
}

// session is a text that only this token makes.
func (d *door) session() string {
	begins := strconv.FormatInt(d.clock().Add(sessionTime).Unix(), 10) + "." + rand.Text()
	return begins + "." + d.sign("session"+begins)
}

func (d *door) isSession(text string) bool {
	d.mu.Lock()
	_, ended := d.ended[text]
	d.mu.Unlock()
	return d.clock().Before(d.endOf(text)) && !ended
}

// endOf is when a session ends by itself; zero: it is none of this token.
func (d *door) endOf(text string) time.Time {
	at := max(0, strings.LastIndexByte(text, '.'))
	ends, _, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(ends, 10, 64)
	if err != nil || !sameText(text[at:], "."+d.sign("session"+text[:at])) {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

func (d *door) end(text string) {
	if !d.isSession(text) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		d.ended = map[string]time.Time{}
	}
	maps.DeleteFunc(d.ended, func(_ string, ends time.Time) bool { return !d.clock().Before(ends) })
	d.ended[text] = d.endOf(text)
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
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		d.door.end(cookie.Value)
	}
	d.setSession(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (d *Dashboard) setSession(w http.ResponseWriter, r *http.Request, text string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: text, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.Header.Get("X-Forwarded-Proto") == "https", // a proxy in front speaks TLS, this server never does
	})
}
