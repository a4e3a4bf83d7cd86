// Package post is a real SMTP server on loopback that keeps the letters it is given. Only tests import it.
package post

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Office takes letters, unless a test has it refuse them.
type Office struct {
	*smtp.Server
	Address string

	mu      sync.Mutex // guards the fields below
	refuse  []error
	letters []Letter
	users   []string
}

// Letter is one message to one recipient, as it came.
type Letter struct {
	From, To string
	Raw      string
}

// Password is the one that lets a user in.
const Password = "p4ss"

// Open serves until the test ends. change may set the server up before it listens; refuse has the answers to the first letters.
func Open(t testing.TB, change func(*smtp.Server), refuse ...error) *Office {
	t.Helper()
	o := &Office{refuse: refuse}
	o.Server = smtp.NewServer(o)
	o.Domain, o.AllowInsecureAuth = "localhost", false
	if change != nil {
		change(o.Server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Address = listener.Addr().String()
	served := make(chan struct{})
	go func() { defer close(served); _ = o.Serve(listener) }()
	t.Cleanup(func() { _ = o.Close(); <-served })
	return o
}

// Letters are those that were taken, oldest first.
func (o *Office) Letters() []Letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.letters)
}

// Users are those who asked to be let in, with the passwords that they gave.
func (o *Office) Users() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.users)
}

// NewSession begins the session of one client.
func (o *Office) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{office: o}, nil }

type session struct {
	office *Office
	Letter
}

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.office.mu.Lock()
		defer s.office.mu.Unlock()
		s.office.users = append(s.office.users, user+":"+password)
		if password != Password {
			return errors.New("wrong password")
		}
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error { s.From = from; return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error { s.To += to; return nil }

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	s.Raw = string(raw)
	s.office.mu.Lock()
	defer s.office.mu.Unlock()
	if len(s.office.refuse) > 0 {
		err, s.office.refuse = s.office.refuse[0], s.office.refuse[1:]
		return err
	}
	s.office.letters = append(s.office.letters, s.Letter)
	return err
}

func (*session) Reset() {}

func (*session) Logout() error { return nil }

// Parse reads the header.
func (l Letter) Parse(t testing.TB) *mail.Message {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(l.Raw))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Parts are the decoded bodies, by their type, such as text/plain.
func (l Letter) Parts(t testing.TB) map[string]string {
	t.Helper()
	m := l.Parse(t)
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts, reader := map[string]string{}, multipart.NewReader(m.Body, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(part.Header.Get("Content-Type"), ";")
		parts[kind] = string(text)
	}
}
