package handlers

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"regexp"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// counter counts the records that are written to it. LF, CRLF and CR end one outside of quotes; blank ones are none. One goroutine only.
type counter struct {
	quotes     bool  // whether fields may be quoted, as in RFC 4180, section 2
	header     int64 // records that are no rows
	separators string
	records    int64
	filled     bool // whether the record being read has anything in it
	inside     bool // of a quoted field
	closed     bool // whether the last byte was the quote that closed a field
	slash      bool // whether that quote followed a backslash
	ends       bool // whether a quote behind that is the last byte: it may be the one that closed the field
	last       byte
}

// sepLine is how a CSV names its separator for spreadsheets.
var sepLine = regexp.MustCompile(`^(?i:sep=)[ -~\t][\r\n]`)

// rows counts the rows of a body in constant memory, also if it is a gzip file or in UTF-16. -1: it is no text, or larger than that unpacked.
func (c *counter) rows(body *bufio.Reader, most int64) int64 {
	limited := &io.LimitedReader{R: body, N: most + 1}
	if start, _ := body.Peek(2); string(start) == "\x1f\x8b" {
		inner := &gzip.Reader{}
		_ = inner.Reset(body) // Read repeats the error
		limited.R = inner
	}
	text := bufio.NewReader(transform.NewReader(limited, unicode.BOMOverride(transform.Nop)))
	c.separators = ",;\t|"
	if start, _ := text.Peek(6); sepLine.Match(start) {
		c.separators, c.records = string(start[4]), -1
	}
	if _, err := io.Copy(c, text); err != nil || limited.N == 0 {
		return -1
	}
	return max(0, c.records-c.header)
}

func (c *counter) Write(p []byte) (int, error) {
	for _, b := range p {
		quoted := c.quotes && c.quoted(b)
		switch {
		case b == 0:
			return 0, errors.New("expected text, found a NUL")
		case !quoted && (b == '\n' || b == '\r'):
			c.filled = false
		case !c.filled && b != ' ':
			c.filled, c.records = true, c.records+1
		}
		c.last = b
	}
	return len(p), nil
}

// quoted reports whether a byte is a quote or within quotes.
func (c *counter) quoted(b byte) bool {
	closed, ends := c.closed, c.ends
	c.closed, c.ends = false, false
	stops := b == '\n' || b == '\r' || c.separates(b)
	switch {
	case ends && stops:
		c.inside = false // MySQL writes \" for the quote of 5", and then the one that closes
	case b == '"' && c.inside:
		c.inside, c.closed, c.slash = false, true, c.last == '\\'
	case b == '"':
		// A quote in the middle of a text, as in 5", opens nothing; the second of two in a quoted field opens it again.
		c.inside, c.ends = closed || !c.filled || c.separates(c.last), closed && c.slash
	case closed && c.slash && !stops:
		c.inside = true // fputcsv of PHP writes \" where others write ""
	}
	return c.inside || b == '"'
}

func (c *counter) separates(b byte) bool { return strings.ContainsRune(c.separators, rune(b)) }
