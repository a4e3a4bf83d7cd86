package feeds

import "strings"

const nginxConfig = `
daemon off; master_process off; pid $DIR/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path $DIR/1; proxy_temp_path $DIR/2; fastcgi_temp_path $DIR/3; uwsgi_temp_path $DIR/4; scgi_temp_path $DIR/5;
	proxy_cache_path $DIR/cache keys_zone=feeds:1m;
	types { text/csv csv; }
	server { listen $ADDRESS; root $DIR/www; `

func nginx(settings string) func(*site, string) []string {
	return func(s *site, _ string) []string {
		return []string{"-p", s.dir, "-e", "stderr", "-c", s.configure(nginxConfig + settings + " }\n}\n")}
	}
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

func apache(settings string) func(*site, string) []string {
	return func(s *site, modules string) []string {
		return []string{"-X", "-f", s.configure(strings.ReplaceAll(apacheConfig, "$MODULES", modules) + settings + "\n")}
	}
}

const lighttpdConfig = `
server.bind = "127.0.0.1"
server.port = $PORT
server.document-root = "$DIR/www"
mimetype.assign = (".csv" => "text/csv")
`

func lighttpd(settings string) func(*site, string) []string {
	return func(s *site, modules string) []string {
		return []string{"-D", "-f", s.configure(lighttpdConfig + settings + "\n"), "-m", modules}
	}
}

func caddy(settings string) func(*site, string) []string {
	return func(s *site, _ string) []string {
		text := "{\n\tadmin off\n\tauto_https off\n}\nhttp://$ADDRESS {\n\troot * $DIR/www\n\tfile_server\n\t" + settings + "\n}\n"
		return []string{"run", "--adapter", "caddyfile", "--config", s.configure(text)}
	}
}

// squidConfig has the defaults of squid for what is kept, in memory.
const squidConfig = `
http_port $ADDRESS accel defaultsite=feeds.example
cache_peer 127.0.0.1 parent $ORIGIN_PORT 0 no-query no-digest originserver
http_access allow all
refresh_pattern . 0 20% 4320
access_log none
cache_log /dev/null
pid_filename none
coredump_dir $DIR
netdb_filename none
pinger_enable off
shutdown_lifetime 0 seconds
`

// debianServers are the servers that Debian has, and the one of Go.
var debianServers = []server{
	{name: "nginx", program: "nginx", debian: "nginx-light", version: []string{"-v"}, args: nginx("")},
	{name: "nginx, `gzip on`", program: "nginx", debian: "nginx-light", version: []string{"-v"}, args: nginx("gzip on; gzip_types text/csv;")},
	{name: "Apache", program: "apache2", debian: "apache2-bin", version: []string{"-v"}, modules: "usr/lib/apache2/modules", args: apache("")},
	{name: "Apache, `mod_deflate`", program: "apache2", debian: "apache2-bin", version: []string{"-v"}, modules: "usr/lib/apache2/modules",
		args: apache("AddOutputFilterByType DEFLATE text/csv")},
	{name: "lighttpd", program: "lighttpd", debian: "lighttpd", version: []string{"-v"}, modules: "usr/lib/lighttpd", args: lighttpd("")},
	{name: "lighttpd, `mod_deflate`", program: "lighttpd", debian: "lighttpd", version: []string{"-v"}, modules: "usr/lib/lighttpd",
		args: lighttpd(`server.modules = ("mod_deflate")` + "\n" + `deflate.mimetypes = ("text/csv")` + "\n" + `deflate.allowed-encodings = ("gzip")`)},
	{name: "caddy", program: "caddy", debian: "caddy", version: []string{"version"}, args: caddy("")},
	{name: "caddy, `encode gzip`", program: "caddy", debian: "caddy", version: []string{"version"}, args: caddy("encode gzip")},
	{name: "Go, `http.FileServer`"},
	{name: "Python, `http.server`", program: "/usr/bin/python3", debian: "python3", version: []string{"--version"},
		args: func(s *site, _ string) []string {
			return []string{"-m", "http.server", "--bind", "127.0.0.1", "--directory", s.path("www"), s.port()}
		}},
	{name: "PHP, `php -S`", program: "php", debian: "php-cli", version: []string{"--version"}, whole: true,
		args: func(s *site, _ string) []string { return []string{"-S", s.address, "-t", s.path("www")} }},
	{name: "busybox httpd", program: "busybox", debian: "busybox", version: []string{},
		args: func(s *site, _ string) []string { return []string{"httpd", "-f", "-p", s.address, "-h", s.path("www")} }},
	{name: "mini_httpd", program: "mini_httpd", debian: "mini-httpd", version: []string{"-V"},
		args: func(s *site, _ string) []string {
			return []string{"-D", "-h", "127.0.0.1", "-p", s.port(), "-d", s.path("www"), "-i", s.path("pid")}
		}},
	{name: "webfs", program: "webfsd", debian: "webfs",
		args: func(s *site, _ string) []string { return []string{"-F", "-i", "127.0.0.1", "-p", s.port(), "-r", s.path("www")} }},
	{name: "squid", program: "squid", debian: "squid", version: []string{"-v"}, cache: true,
		args: func(s *site, _ string) []string { return []string{"-N", "-f", s.configure(squidConfig)} }},
	{name: "varnish", program: "varnishd", debian: "varnish", version: []string{"-V"}, cache: true, stale: true,
		args: func(s *site, _ string) []string {
			return []string{"-F", "-a", s.address, "-b", s.origin, "-n", s.path("varnish"), "-j", "none", "-s", "malloc,16m"}
		}},
	{name: "nginx, `proxy_cache`", program: "nginx", debian: "nginx-light", version: []string{"-v"}, cache: true, stale: true,
		args: nginx("location / { proxy_pass http://$ORIGIN; proxy_cache feeds; proxy_cache_valid 200 10m; }")},
}
