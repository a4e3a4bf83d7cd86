package feeds

import "strings"

// debianServers are servers that Debian has, and the one of Go.
var debianServers = []server{
	nginx("", ""),
	nginx("`gzip on`", "gzip on; gzip_types text/csv;"),
	apache("", ""),
	apache("`mod_deflate`", "AddOutputFilterByType DEFLATE text/csv").noting("knows only its plain ETag again, which is sent too"),
	lighttpd("", csvOfLighttpd).noting("may answer with the old file for up to 2 s"),
	lighttpd("`mod_deflate`", csvOfLighttpd+`server.modules = ("mod_deflate")
deflate.mimetypes = ("text/csv")
deflate.allowed-encodings = ("gzip")`).noting("likewise"),
	lighttpd("`mimetype.assign` without it", `mimetype.assign = (".html" => "text/html")`).sendingNothing(),
	caddy("", ""),
	caddy("`encode gzip`", "encode gzip"),
	{name: "Go", with: "`http.FileServer`"},
	{
		name: "Python", with: "`http.server`", program: "/usr/bin/python3", debian: "python3", version: []string{"--version"},
		args: func(s *site, _ string) []string {
			return []string{"-m", "http.server", "--bind", "127.0.0.1", "--directory", s.path("www"), s.port()}
		},
	},
	{
		name: "PHP", with: "`php -S`", program: "php", debian: "php-cli", version: []string{"--version"}, whole: true,
		args: func(s *site, _ string) []string { return []string{"-S", s.address, "-t", s.path("www")} },
	},
	{
		name: "busybox httpd", program: "busybox", debian: "busybox", version: []string{},
		args: func(s *site, _ string) []string { return []string{"httpd", "-f", "-p", s.address, "-h", s.path("www")} },
	},
	{
		name: "mini_httpd", program: "mini_httpd", debian: "mini-httpd", version: []string{"-V"},
		args: func(s *site, _ string) []string {
			return []string{"-D", "-h", "127.0.0.1", "-p", s.port(), "-d", s.path("www"), "-i", s.path("pid")}
		},
	},
	{
		name: "webfs", program: "webfsd", debian: "webfs",
		args: func(s *site, _ string) []string {
			return []string{"-F", "-i", "127.0.0.1", "-p", s.port(), "-r", s.path("www")}
		},
	},
}

func (s server) noting(note string) server {
	s.note = note
	return s
}

// sendingNothing is one that never answers 304.
func (s server) sendingNothing() server {
	s.whole = true
	return s
}

const nginxConfig = `
daemon off; master_process off; pid $DIR/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path $DIR/1; proxy_temp_path $DIR/2; fastcgi_temp_path $DIR/3; uwsgi_temp_path $DIR/4; scgi_temp_path $DIR/5;
	proxy_cache_path $DIR/cache keys_zone=feeds:1m;
	types { text/csv csv; }
	server { listen $ADDRESS; root $DIR/www; `

func nginx(with, settings string) server {
	return server{name: "nginx", with: with, program: "nginx", debian: "nginx-light", version: []string{"-v"}, args: func(s *site, _ string) []string {
		return []string{"-p", s.dir, "-e", "stderr", "-c", s.configure(nginxConfig + settings + " }\n}\n")}
	}}
}

const apacheConfig = `
ServerRoot $DIR
DefaultRuntimeDir $DIR
PidFile $DIR/pid
ErrorLog /dev/null
ServerName localhost
Listen $ADDRESS
DocumentRoot $DIR/www
LoadModule mpm_event_module $MODULES/mod_mpm_event.so
LoadModule authz_core_module $MODULES/mod_authz_core.so
LoadModule mime_module $MODULES/mod_mime.so
LoadModule filter_module $MODULES/mod_filter.so
LoadModule deflate_module $MODULES/mod_deflate.so
TypesConfig /dev/null
AddType text/csv .csv
`

func apache(with, settings string) server {
	return server{
		name: "Apache", with: with, program: "apache2", debian: "apache2-bin", version: []string{"-v"}, modules: "usr/lib/apache2/modules",
		args: func(s *site, modules string) []string {
			return []string{"-X", "-f", s.configure(strings.ReplaceAll(apacheConfig, "$MODULES", modules) + settings + "\n")}
		},
	}
}

const lighttpdConfig = `
server.bind = "127.0.0.1"
server.port = $PORT
server.document-root = "$DIR/www"
`

const csvOfLighttpd = `mimetype.assign = (".csv" => "text/csv")
`

func lighttpd(with, settings string) server {
	return server{
		name: "lighttpd", with: with, program: "lighttpd", debian: "lighttpd lighttpd-mod-deflate", version: []string{"-v"}, modules: "usr/lib/lighttpd",
		args: func(s *site, modules string) []string {
			return []string{"-D", "-f", s.configure(lighttpdConfig + settings + "\n"), "-m", modules}
		},
	}
}

const caddyConfig = `
{
	admin off
	auto_https off
}
http://$ADDRESS {
	root * $DIR/www
	file_server
	`

func caddy(with, settings string) server {
	return server{name: "caddy", with: with, program: "caddy", debian: "caddy", version: []string{"version"}, args: func(s *site, _ string) []string {
		return []string{"run", "--adapter", "caddyfile", "--config", s.configure(caddyConfig + settings + "\n}\n")}
	}}
}
