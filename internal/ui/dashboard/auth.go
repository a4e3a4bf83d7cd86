package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

const (
	sessionCookie = "refreshd_dashboard"
	sessionTime   = 12 * time.Hour
)

type auth struct {
	tokens  []Token // none: everybody may do all
	clock   func() time.Time
	proxies []netip.Prefix

	tries tries

	mu    sync.Mutex
	ended map[string]time.Time // guarded by mu: sessions that were ended, until they would have expired
}

// client is the address of a client: the last one that is no trusted proxy.
func (a *auth) client(r *http.Request) string {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	isProxy := func(address string) bool {
		parsed, err := netip.ParseAddr(address)
		return err == nil && slices.ContainsFunc(a.proxies, func(p netip.Prefix) bool { return p.Contains(parsed.Unmap()) })
	}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, next := range slices.Backward(forwarded) {
		if !isProxy(address) || strings.TrimSpace(next) == "" {
			break
		}
		address = strings.TrimSpace(next)
	}
	return address
}

// check finds a token by its text; nil, false: too many wrong ones came from there.
func (a *auth) check(r *http.Request, text string) (right *Token, may bool) {
	for i, token := range a.tokens {
		if sameText(sign(token.Text, "token"+text), sign(token.Text, "token"+token.Text)) {
			right = &a.tokens[i]
		}
	}
	return a.tries.admit(r.Context(), a.client(r), right)
}

// session returns a text that only this token can sign.
func (a *auth) session(token *Token) string {
	text := strconv.FormatInt(a.clock().Add(sessionTime).Unix(), 10) + "." + rand.Text()
	return text + "." + sign(token.Text, "session"+text)
}

// signer returns the token that signed a valid session; nil: none.
func (a *auth) signer(text string) *Token {
	a.mu.Lock()
	_, ended := a.ended[text]
	a.mu.Unlock()
	if ended || !a.clock().Before(expiry(text)) {
		return nil
	}
	at := max(0, strings.LastIndexByte(text, '.'))
	for i, token := range a.tokens {
		if sameText(text[at:], "."+sign(token.Text, "session"+text[:at])) {
			return &a.tokens[i]
		}
	}
	return nil
}

// expiry is when a session expires; zero: it is none.
func expiry(text string) time.Time {
	ends, _, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(ends, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

func (a *auth) end(text string) {
	if a.signer(text) == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.ended, func(_ string, ends time.Time) bool { return !a.clock().Before(ends) })
	a.ended[text] = expiry(text)
}

func sign(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// signedIn passes requests with a credential, and those for the sign-in page and its files.
func (d *Dashboard) signedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		var token *Token
		open, may := len(d.auth.tokens) == 0, true
		if !open && bearer {
			token, may = d.auth.check(r, text)
		} else if cookie, err := r.Cookie(sessionCookie); !open && err == nil {
			token = d.auth.signer(cookie.Value)
		}
		switch {
		case !may:
			tooMany(w)
		case token != nil:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, token)))
		case open || r.URL.Path == "/login" || strings.HasPrefix(r.URL.Path, "/static/"):
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
	w.Header().Set("Retry-After", strconv.Itoa(int(tryWait.Seconds())))
	http.Error(w, "too many wrong tokens: wait 5 seconds", http.StatusTooManyRequests)
}

func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	if len(d.auth.tokens) == 0 {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	shown, status := frame{Title: "Sign in"}, http.StatusOK
	if r.Method == http.MethodPost {
		right, may := d.auth.check(r, r.PostFormValue("token"))
		if right != nil {
			setCookie(w, r, sessionCookie, d.auth.session(right), sessionTime)
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
		d.auth.end(cookie.Value)
	}
	setCookie(w, r, sessionCookie, "", -time.Second)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// maxForm bounds a form, in bytes. A policy may have 64 KiB.
const maxForm = 256 << 10

// policyOfContent lets a page load only what this server sends. Pictures of attempts have another policy.
const policyOfContent = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard sets the headers, refuses foreign names and sites, and checks who asks.
func (d *Dashboard) guard(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this form was sent by another site, and nothing was done", http.StatusForbidden)
	}))
	next = protection.Handler(d.signedIn(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policyOfContent)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !d.isHost(r.Host) {
			http.Error(w, "expected the name localhost, an address of loopback or a name that this dashboard was given, found another", http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// isHost reports whether a browser asks for a name of this dashboard. A foreign name that leads to loopback would let a site read these pages.
func (d *Dashboard) isHost(name string) bool {
	listens, _, _ := net.SplitHostPort(d.config.Listen)
	if len(d.config.Hosts) == 0 && !isLoopback(listens) {
		return true
	}
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		host = name
	}
	return isLoopback(host) || slices.ContainsFunc(d.config.Hosts, func(own string) bool { return strings.EqualFold(own, host) })
}

// sameText takes as long for any two texts.
func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

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

// Token lets in whoever knows it.
type Token struct {
	Name     string // of who knows it, for journal and history; empty: see Config.Tokens
	Text     string // 16 bytes or more
	ReadOnly bool   // of a viewer, who may do no action
}

func validateTokens(tokens []Token) error {
	names, texts := map[string]bool{}, map[string]bool{}
	for _, token := range tokens {
		switch {
		case len(token.Text) < minToken:
			return fmt.Errorf("token: expected at least %d bytes, found %d", minToken, len(token.Text))
		case token.Name == "" || token.Name != document.Shorten(token.Name, model.MaxBy):
			return fmt.Errorf("token: expected a name of at most %d bytes, found %s", model.MaxBy, document.Found(token.Name))
		case names[token.Name] || texts[token.Text]:
			return errors.New("token: expected each name and each token once, found one again")
		}
		names[token.Name], texts[token.Text] = true, true
	}
	return nil
}

// ReadTokens reads a file with one token alone, or with lines ROLE NAME TOKEN. An error never repeats a token.
func ReadTokens(file, text string) (tokens []Token, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, fmt.Errorf("%s: expected a token, found nothing", file)
	}
	roles := map[string]bool{string(acl.Viewer): true, string(acl.Operator): false}
	if _, is := roles[strings.Fields(text)[0]]; !is && !strings.Contains(text, "\n") {
		return []Token{{Text: text}}, nil
	}
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		expected := fmt.Sprintf("%s:%d: expected ROLE NAME TOKEN", file, i+1)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s, found %s", expected, words.Count(len(fields), "word", "words"))
		}
		readOnly, is := roles[fields[0]]
		if !is {
			return nil, fmt.Errorf("%s with the role viewer or operator, found another", expected)
		}
		token := Token{Name: document.Shorten(fields[1], model.MaxBy), Text: fields[2], ReadOnly: readOnly}
		if err := validateTokens(append(tokens, token)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: expected a token, found comments alone", file)
	}
	return tokens, nil
}
