package notifier

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"text/template"

	"github.com/wneessen/go-mail"

	"github.com/refreshd/refreshd/model/document"
)

type email struct {
	from      string
	server    string
	options   []mail.Option
	templates templates
}

// readLogin reads the security of the connection, and the user.
func (e *email) readLogin(doc *document.Reader, environment Secrets) {
	security := doc.OneOf("tls", "starttls", "starttls", "tls", "none")
	e.options = append(e.options, map[string]mail.Option{
		"starttls": mail.WithTLSPolicy(mail.TLSMandatory), "tls": mail.WithSSL(), "none": mail.WithTLSPolicy(mail.NoTLS),
	}[security])
	user, password := doc.Text("user"), readSecret(doc, "password", environment)
	if (user == "") != (password == "") || user != "" && security == "none" {
		doc.Refuse("user", "user and password together, and never without TLS", "something else")
	}
	if user != "" {
		e.options = append(e.options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user), mail.WithPassword(password))
	}
}

// readServer reads the address of the server, and its authorities.
func (e *email) readServer(doc *document.Reader) {
	host, portText, err := net.SplitHostPort(doc.Text("email"))
	doc.Require(err == nil, "email", `the host and port of a server, such as "smtp.example.com:587"`)
	port, err := strconv.Atoi(portText)
	doc.Require(err == nil && port > 0 && port <= 65535 && host != "", "email", "a host, and a port from 1 to 65535")
	security := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if authorities := doc.Text("ca"); authorities != "" {
		text, err := os.ReadFile(authorities)
		security.RootCAs = x509.NewCertPool()
		doc.Require(err == nil && security.RootCAs.AppendCertsFromPEM(text), "ca", "a file of PEM certificates")
	}
	e.server = host
	e.options = append(e.options, mail.WithPort(port), mail.WithTLSConfig(security), mail.WithHELO(e.domain()))
}

func (e *email) domain() string { _, domain, _ := strings.Cut(e.from, "@"); return domain }

func (e *email) send(ctx context.Context, m message) error {
	subject, text, html, err := e.templates.render(m)
	if err != nil {
		return finalError{err}
	}
	letter := mail.NewMsg()
	if err := errors.Join(letter.From(e.from), letter.To(m.address)); err != nil {
		return finalError{err}
	}
	letter.SetMessageIDWithValue(m.id() + "@" + e.domain()) // the same in every try, so that a mailbox recognizes a repetition
	letter.SetDateWithValue(m.at)
	letter.SetGenHeader("Auto-Submitted", "auto-generated")
	letter.Subject(subject)
	letter.SetBodyString(mail.TypeTextPlain, text)
	if html != "" {
		letter.AddAlternativeString(mail.TypeTextHTML, html)
	}
	client, err := mail.NewClient(e.server, e.options...)
	if err != nil {
		return err
	}
	err = client.DialAndSendWithContext(ctx, letter)
	if refused, is := errors.AsType[*mail.SendError](err); is && !refused.IsTemp() && refused.ErrorCode() >= 500 {
		return finalError{err}
	}
	return err
}

//go:embed templates
var embedded embed.FS

// templates are those of one channel. Their values cannot end a line, nor be HTML.
type templates struct {
	subject, text *template.Template
	html          *htmltemplate.Template // nil: text alone
}

const (
	subjectFile = "subject.txt"
	textFile    = "text.txt"
	htmlFile    = "html.html"
)

// readTemplates reads the templates of a directory; a missing file is the embedded one.
func readTemplates(directory string) (t templates, err error) {
	read := func(name string) string {
		text, failed := fs.ReadFile(embedded, "templates/"+name)
		if directory != "" {
			if own, missing := os.ReadFile(directory + "/" + name); !errors.Is(missing, fs.ErrNotExist) {
				text, failed = own, missing
			}
		}
		err = errors.Join(err, failed)
		return string(text)
	}
	subject, text, html := read(subjectFile), read(textFile), read(htmlFile)
	var errs [3]error
	t.subject, errs[0] = template.New(subjectFile).Option("missingkey=zero").Parse(subject)
	t.text, errs[1] = template.New(textFile).Option("missingkey=zero").Parse(text)
	if strings.TrimSpace(html) != "" {
		t.html, errs[2] = htmltemplate.New(htmlFile).Option("missingkey=zero").Parse(html)
	}
	if err = cmp.Or(err, errs[0], errs[1], errs[2]); err != nil {
		return t, err
	}
	one := Notice{fieldEvent: "disabled", fieldUID: "m", fieldAt: "2026-11-21T07:00:00.000Z"}
	_, _, _, err = t.render(message{notices: []Notice{one, one}})
	return t, err
}

type letterData struct {
	Count   int
	Notices []Notice
	// Events counts the notices of each event.
	Events map[string]int
}

func (t templates) render(m message) (subject, text, html string, err error) {
	data := letterData{Count: len(m.notices), Events: make(map[string]int)}
	for _, notice := range m.notices {
		clean := make(Notice, len(notice)) // no value can end a line
		for name, value := range notice {
			clean[name] = document.OneLine(value)
		}
		data.Notices = append(data.Notices, clean)
		data.Events[clean[fieldEvent]]++
	}
	var out [3]bytes.Buffer
	err = errors.Join(t.subject.Execute(&out[0], data), t.text.Execute(&out[1], data))
	if t.html != nil {
		err = errors.Join(err, t.html.Execute(&out[2], data))
	}
	if err != nil {
		return "", "", "", fmt.Errorf("render: %w", err)
	}
	return document.Cut(strings.TrimSpace(document.OneLine(out[0].String())), 150), out[1].String(), out[2].String(), nil
}
