package feeds

import (
	_ "embed"
	"os"
)

//go:embed testdata/serve.cjs
var serveScript []byte

// node serves by a part of testdata/serve.cjs.
func node(which string) func(*site, string) []string {
	return func(s *site, _ string) []string {
		script := s.path("serve.cjs") // where nobody may read it
		must(s.T, os.WriteFile(script, serveScript, 0o644))
		return []string{script, which, s.path("www"), s.port()}
	}
}

// npmServers are servers of npm, which only make feeds runs.
var npmServers = []server{
	{name: "express", with: "`express.static`, `compression`", program: "node", npm: "express", args: node("express-static")},
	{name: "express", with: "`res.send`, `compression`", program: "node", npm: "express", args: node("express-send")},
	{name: "express", with: "`res.write`", program: "node", npm: "express", args: node("express-write"), whole: true},
	{name: "fastify static", with: "`@fastify/compress`", program: "node", npm: "@fastify/static", args: node("fastify")},
	{name: "sirv", program: "node", npm: "sirv", args: node("sirv"), whole: true, note: "looks at no date"},
	{name: "sirv", with: "`etag: true`", program: "node", npm: "sirv", args: node("sirv-etag")},
	{name: "serve", program: "serve", npm: "serve", args: func(s *site, _ string) []string {
		return []string{"--no-clipboard", "--listen", "tcp://" + s.address, s.path("www")}
	}},
	{name: "http-server", program: "http-server", npm: "http-server", args: func(s *site, _ string) []string {
		return []string{"-a", "127.0.0.1", "-p", s.port(), s.path("www")}
	}},
}
