package notifier

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"mime"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/post"
)

const mailRoutes = `
channels:
  owners: {email: "%s", tls: none, from: refreshd@example.com, to: %s, gather: 5s, retries: [1m]}
routes:
- {events: [disabled, stale], channels: [owners]}
`

func subject(t *testing.T, l post.Letter) string {
	t.Helper()
	text := check.Got(new(mime.WordDecoder).DecodeHeader(l.Parse(t).Header.Get("Subject")))(t)
	return text
}

func TestAMailGoesToWhomPayloadLabelOrPolicyNameAndToNobodyWithoutAValidAddress(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		for to, want := range map[string]string{
			"{payload: owner}": "[a@example.com b@example.com]", "{label: mail}": "[l@example.com]", "policy": "[a@example.com p@example.com]", "ops@example.com": "[ops@example.com]",
		} {
			t.Run(to, func(t *testing.T) {
				p := post.Open(t, nil)
				b := setup(t, server, fmt.Sprintf(mailRoutes, p.Address, to))
				b.Server.Flush(t)
				b.save("a", `"payload":{"owner":"a@example.com"},"policy":{"timeout":"1m","email":{"payload":"owner"}}`)
				b.save("b", `"payload":{"owner":"b@example.com"},"labels":{"mail":"l@example.com"},"policy":{"timeout":"1m","email":"p@example.com"}`)
				b.save("c", `"payload":{"owner":"nobody"},"labels":{"mail":"nobody"},"policy":{"timeout":"1m","email":{"label":"mail"}}`)
				b.save("d", `"payload":{"owner":"x@example.com\r\nBcc: y@example.com"},"policy":{"timeout":"1m"}`)
				b.tell(disabled("a", "gone"), disabled("b", "gone"), disabled("c", "gone"), disabled("d", "gone"), disabled("removed", "gone"))
				b.round(b.Notifier)
				b.after(5 * time.Second)
				var told []string
				for _, l := range p.Letters() {
					told = append(told, l.To)
				}
				got := sorted(told)
				failIf(t, got != want, "told %s, want %s", got, want)
				nobody := 5 - strings.Count(want, "@")
				if to == "ops@example.com" {
					nobody = 0
				}
				if got := b.Stats()["notices_to_nobody"]; got != nobody || strings.Contains(b.log.String(), "nobody is notified") != (nobody > 0) {
					t.Errorf("counted %d to nobody, want %d; %s", got, nobody, b.log.String())
				}
			})
		}
	})
}

func TestNothingInANoticeBecomesAHeaderOrHTML(t *testing.T) {
	p := post.Open(t, nil)
	b := setup(t, testkit.Miniredis(t), fmt.Sprintf(mailRoutes, p.Address, "ops@example.com"))
	evil := "gone\r\nBcc: evil@example.com\r\n\r\n<script>alert(1)</script>\r\n.\r\nMAIL FROM:<x@y>\u202e"
	b.tell(disabled("m1\r\nBcc: evil@example.com", evil))
	b.round(b.Notifier)
	b.after(5 * time.Second)
	letters := p.Letters()
	stopIf(t, len(letters) != 1, "got %d letters; %s", len(letters), b.log.String())
	m := letters[0].Parse(t)
	if letters[0].To != "ops@example.com" || letters[0].From != "refreshd@example.com" || m.Header.Get("Bcc") != "" || m.Header.Get("Auto-Submitted") != "auto-generated" {
		t.Errorf("sent %+v", m.Header)
	}
	got := subject(t, letters[0])
	failIf(t, got != "refreshd bigtables: m1  Bcc: evil@example.com is disabled.", "subject %q", got)
	parts := letters[0].Parts(t)
	html := parts["text/html"]
	failIf(t, strings.Contains(html, "<script>") || !strings.Contains(html, "&lt;script&gt;"), "HTML: %s", html)
	text := parts["text/plain"]
	failIf(t, !strings.Contains(text, "gone  Bcc: evil@example.com    <script>") || strings.Contains(text, "\u202e"), "text: %q", text)
}

func TestAMailIsTriedAgainUnlessTheServerRefusesItForGood(t *testing.T) {
	for name, test := range map[string]struct {
		refuse error
		want   string
	}{
		"busy":    {&smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "busy"}, "1 letters, 0 kept"},
		"refused": {&smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "no"}, "0 letters, 1 kept"},
	} {
		t.Run(name, func(t *testing.T) {
			p := post.Open(t, nil, test.refuse)
			b := setup(t, testkit.Miniredis(t), fmt.Sprintf(mailRoutes, p.Address, "ops@example.com"))
			b.tell(disabled("m1", "gone"), []string{"event", "stale", "uid", "m2", "at", "2026-11-21T07:00:00.000Z", "last_success_at", "2026-11-20T07:00:00.000Z"})
			b.round(b.Notifier)
			b.after(5 * time.Second)
			b.after(time.Minute)
			got := fmt.Sprintf("%d letters, %d kept", len(p.Letters()), len(b.undelivered()))
			failIf(t, got != test.want, "got %s, want %s; %s", got, test.want, b.log.String())
			for _, l := range p.Letters() {
				got := subject(t, l)
				failIf(t, got != "refreshd bigtables: 2 notices, 1 disabled, 1 stale", "subject %q", got)
			}
		})
	}
}

func TestAMailGoesByTLSWithAPassword(t *testing.T) {
	ca := testkit.NewAuthority(t)
	ca.Issue(t, "server", "127.0.0.1")
	pair := check.Got(tls.LoadX509KeyPair(ca.File("server.crt"), ca.File("server.key")))(t)
	p := post.Open(t, func(s *smtp.Server) {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	})
	const routes = `
channels:
  owners: {email: "%s", from: refreshd@example.com, to: ops@example.com, user: ann, password: {env: PASSWORD}, %s digest: none, retries: []}
routes:
- {events: [disabled], channels: [owners]}
`
	b := setup(t, testkit.Miniredis(t), fmt.Sprintf(routes, p.Address, "ca: "+ca.File("ca.crt")+","))
	b.tell(disabled("m1", "gone"))
	b.round(b.Notifier)
	failIf(t, len(p.Letters()) != 1 || strings.Join(p.Users(), " ") != "ann:p4ss",
		"got %d letters of %v; %s", len(p.Letters()), p.Users(), b.log.String())
	stranger := b.another(fmt.Sprintf(routes, p.Address, ""))
	b.tell(disabled("m1", "gone"))
	b.round(stranger)
	failIf(t, len(p.Letters()) != 1 || len(b.undelivered()) != 1, "a server that nobody vouches for was believed")
}

func TestTemplatesOfADirectoryReplaceTheEmbeddedOnes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"subject.txt": "{{.Count}} of us", "html.html": ""} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	own := check.Got(readTemplates(dir))(t)
	subject, text, html, err := own.render(message{notices: []Notice{{"event": "disabled", "uid": "m1"}}})
	failIf(t, subject != "1 of us" || !strings.Contains(text, "m1") || html != "" || err != nil, "%q %q %q %v", subject, text, html, err)
	must(t, os.WriteFile(filepath.Join(dir, "text.txt"), []byte("{{.Nothing}}"), 0o600))
	_, err = readTemplates(dir)
	failIf(t, err == nil, "a template that cannot be rendered was taken")
}

func TestAServerOfMailThatHangsUpIsAskedAgain(t *testing.T) {
	listener := check.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	check.Run(t, func(context.Context) error {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		lines := bufio.NewScanner(conn)
		fmt.Fprint(conn, "220 hello\r\n")
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "MAIL") {
			fmt.Fprint(conn, "250 localhost\r\n")
		}
		return nil
	})
	b := setup(t, testkit.Miniredis(t), fmt.Sprintf(mailRoutes, listener.Addr(), "ops@example.com"))
	b.tell(disabled("m1", "gone"))
	b.round(b.Notifier)
	b.after(5 * time.Second)
	stats := b.Stats()
	failIf(t, stats["notices_tries_failed"] != 1 || stats["notices_undelivered"] != 0, "want one try that is followed by another, got %v", stats)
}
