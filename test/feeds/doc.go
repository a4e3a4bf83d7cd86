// Package feeds downloads from the web servers and caches that people have, as `refreshd worker --fetch` does, and writes what it sees into
// docs/feeds.md.
package feeds
