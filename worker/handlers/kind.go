package handlers

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
)

var (
	// tabular finds CSV, JSON lines and TSV, in this order, in the type of a body, the name of its file, a path or a parameter.
	tabular = regexp.MustCompile(`(?im)(?:\b|_|%3a)(?:(csv|comma-separated-values)|(ndjson|jsonl(?:ines)?)|tsv|tab(?:-separated-values)?)(?:\.gz)?["'/ ]*([;,&]|$)`)
	// vague types say nothing about the body: PHP says text/html by default.
	vague   = regexp.MustCompile(`(?i)^(?:$|text/plain|text/html|[^;,]*(?:octet-stream|download|excel|gzip))(?:$|[;, ])`)
	page    = regexp.MustCompile(`(?i)^\x{feff}?\s*<(!doctype\s+)?html\b`)
	later   = regexp.MustCompile(`(?is)^\x{feff}?\s*<(.*<html|meta|link|form|center|noscript)\b`) // behind what XML has before, or without
	errPage = errors.New("expected data as before, found a web page")
)

// counterOf returns the row counter for a response, or nil. If the type is vague, the name decides: a path, or a parameter such as format=csv.
func counterOf(response *http.Response, source *url.URL) *counter {
	kind := response.Header.Get("Content-Type")
	texts := []string{kind}
	if asked := response.Request.URL; vague.MatchString(kind) {
		texts = append(texts, response.Header.Get("Content-Disposition"), asked.Path, source.Path, asked.RawQuery, source.RawQuery)
	}
	found := tabular.FindStringSubmatch(strings.Join(texts, "\n"))
	if found == nil {
		return nil
	}
	c := &counter{quotes: found[1] != "", header: 1}                                // in TSV a quote is a sign like others, and a break is escaped
	if found[2] != "" || strings.Contains(strings.ToLower(kind), "header=absent") { // RFC 4180, section 3
		c.header = 0
	}
	return c
}

// isHTML judges a body by its type and first bytes. Beginnings that other formats share, such as <a>, <!-- and <?xml, need the type of a page.
func isHTML(contentType string, head []byte) bool {
	declared := strings.Contains(strings.ToLower(contentType), "html")
	return page.Match(head) || declared && (later.Match(head) || strings.HasPrefix(http.DetectContentType(head), "text/html"))
}

// checkPage refuses a page in place of data. A feed that is a page remains one, and a payload may say "expect":"html".
func (d *download) checkPage(isPage bool) error {
	var payload struct{ Expect any }
	_ = json.Unmarshal(d.attempt.Payload, &payload)
	old, err := os.Open(d.path)
	if !isPage || payload.Expect == "html" || err != nil {
		return nil
	}
	defer func() { _ = old.Close() }()
	head, _ := io.ReadAll(io.LimitReader(old, 512))
	if len(head) == 0 || isHTML("text/html", head) { // its type is not known any more
		return nil
	}
	return errPage
}
