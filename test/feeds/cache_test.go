package feeds

// caches are servers of Debian in front of another one, which says nothing of how long its feed may be kept.
var caches = []server{
	{
		name: "squid", program: "squid", debian: "squid", version: []string{"-v"}, cache: true,
		args: func(s *site, _ string) []string { return []string{"-N", "-f", s.configure(squidConfig)} },
	},
	varnish("", "").staying("its copy for `default_ttl` (2 min), if the server behind it sends no `Cache-Control`"),
	varnish("`hash_always_miss`", "if (req.http.Cache-Control) { set req.hash_always_miss = true; }"),
	nginxCache("`proxy_cache`", "").staying("its copy for `proxy_cache_valid` (here 10 min), likewise"),
	nginxCache("`proxy_cache_bypass`", "proxy_cache_bypass $http_cache_control; "),
}

// staying is a cache that cannot be made to ask the server behind it.
func (s server) staying(note string) server {
	s.stale = true
	return s.noting(note)
}

func nginxCache(with, settings string) server {
	s := nginx(with, "location / { proxy_pass http://$ORIGIN; proxy_cache feeds; proxy_cache_valid 200 10m; "+settings+"}")
	s.cache = true
	return s
}

const varnishConfig = `
vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "$ORIGIN_PORT"; }
sub vcl_recv { `

func varnish(with, settings string) server {
	return server{
		name: "varnish", with: with, program: "varnishd", debian: "varnish", version: []string{"-V"}, cache: true,
		args: func(s *site, _ string) []string {
			config := s.configure(varnishConfig + settings + " }\n")
			return []string{"-F", "-a", s.address, "-f", config, "-n", s.path("varnish"), "-j", "none", "-s", "malloc,16m"}
		},
	}
}

// squidConfig has the defaults of squid for how long a file is kept that says nothing of it, but keeps it in memory.
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
