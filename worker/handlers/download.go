package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"

	"github.com/refreshd/refreshd/worker"
)

// download is one body on its way into a file. One goroutine only.
type download struct {
	ctx      context.Context
	attempt  *worker.Attempt
	source   *url.URL // without what it does not depend on
	response *http.Response
	path     string
	most     int64 // bytes

	bytes int64
	hash  hash.Hash
	rows  rowCount
	body  error // what went wrong with the body, and not with the file
}

var errTooLarge = errors.New("the file is too large")

// receive copies the body. What is stale by now must not replace anything.
func (d *download) receive(file io.Writer) error {
	d.hash = sha256.New()
	_, err := io.Copy(io.MultiWriter(file, d.hash, &d.rows), d)
	if err != nil {
		return err
	}
	return context.Cause(d.ctx)
}

// publish replaces the file, unless a later attempt has. A sidecar must never vouch for another file than its own.
func (d *download) publish(written string) error {
	return publish(d.ctx, d.path, d.attempt.Fence, func() error {
		if err := d.rename(written); err != nil {
			return err
		}
		return writeSidecar(d.path, d.meta())
	})
}

func (d *download) rename(written string) error {
	if err := ignoreMissing(os.Remove(sidecarPath(d.path))); err != nil {
		return err
	}
	return os.Rename(written, d.path)
}

func (d *download) meta() sidecar {
	return sidecar{
		URL: digest(d.source.String()), ETag: d.response.Header.Get("ETag"), LastModified: d.response.Header.Get("Last-Modified"),
		Bytes: d.bytes, SHA256: hex.EncodeToString(d.hash.Sum(nil)),
	}
}

// Read hands on the body, counts it and tells how far it is.
func (d *download) Read(p []byte) (int, error) {
	n, err := d.response.Body.Read(p)
	d.bytes += int64(n)
	if d.bytes > d.most {
		err = errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		d.body = err
		return 0, err
	}
	switch total := d.response.ContentLength; {
	case n == 0:
	case total > 0:
		d.attempt.Status(fmt.Sprintf("Downloading: %s of %s", size(d.bytes), size(total)), int(d.bytes*100/total))
	default:
		d.attempt.Status("Downloading: "+size(d.bytes), -1)
	}
	return n, err
}

// failure sorts what went wrong by whom it concerns: the end of the context, the owner, the network, or this machine.
func (d *download) failure(err error) error {
	switch {
	case d.ctx.Err() != nil:
		return context.Cause(d.ctx)
	case errors.Is(err, errOvertaken):
		return worker.ErrorType(err, "overtaken")
	case errors.Is(d.body, errTooLarge):
		return d.tooLarge()
	case errors.Is(d.body, io.ErrUnexpectedEOF):
		return worker.ErrorType(fmt.Errorf("the body is cut off after %d bytes", d.bytes), "truncated")
	case d.body != nil:
		return requestError(d.ctx, fmt.Errorf("read the body: %w", d.body))
	default:
		return worker.ErrorType(worker.Reason(fmt.Errorf("write the file: %w", err), "the file cannot be written"), "disk")
	}
}

func (d *download) tooLarge() error {
	err := fmt.Errorf("%w: expected at most %d bytes", errTooLarge, d.most)
	return ownersFault(err, "too_large", "The feed is larger than the "+size(d.most)+" that are allowed.")
}

func size(bytes int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); bytes >= one {
			return fmt.Sprintf("%.1f %s", float64(bytes)/float64(one), unit)
		}
	}
	return fmt.Sprintf("%d B", bytes)
}

// rowCount counts the rows of a CSV that is written to it, in constant memory. Rows are the records after the first, which
// is the header; blank lines are none, and a line break inside quotes ends none. Anything with a NUL in it is no CSV. One
// goroutine only.
type rowCount struct {
	records int64
	filled  bool // whether the record being read has anything in it
	inside  bool // of a quoted field
	closed  bool // whether the byte before was the quote that closed a field
	starts  bool // whether the byte before was a separator
	binary  bool

	lines int64 // that are not blank, whatever quotes they have
	text  bool  // whether the line being read has anything in it
}

func (c *rowCount) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			c.endLine()
		}
		c.text = c.text || b != '\n' && b != '\r' && b != ' '
		closed := c.closed
		c.closed = false
		switch {
		case b == '"' && c.inside:
			c.inside, c.closed = false, true
		case b == '"':
			// A quote in the middle of a text, as in 5", opens nothing; the second of two in a quoted field opens it again.
			c.inside = closed || c.starts || !c.filled
			c.filled = true
		case b == '\n' && !c.inside:
			c.end()
		case b == 0:
			c.binary = true
		case b != '\r' && b != '\n':
			c.filled = true
		}
		c.starts = b == ',' || b == ';' || b == '\t' || b == '|'
	}
	return len(p), nil
}

func (c *rowCount) endLine() {
	if c.text {
		c.lines++
	}
	c.text = false
}

// count gives the attempt its numbers: the bytes, and the rows of what its type or its name says is CSV or JSON lines.
func (d *download) count() {
	d.attempt.Metric("bytes", float64(d.bytes))
	kind, _, _ := mime.ParseMediaType(d.response.Header.Get("Content-Type"))
	name := path.Ext(d.source.Path)
	switch rows, counted := d.rows.rows(); {
	case !counted:
	case slices.Contains([]string{"application/x-ndjson", "application/jsonl", "application/jsonlines", "application/x-jsonlines"}, kind), name == ".jsonl", name == ".ndjson":
		d.rows.endLine()
		d.attempt.Metric("rows", float64(d.rows.lines))
	case kind == "text/csv", kind == "text/tab-separated-values", name == ".csv", name == ".tsv":
		d.attempt.Metric("rows", float64(rows))
	}
}

func (c *rowCount) end() {
	if c.filled {
		c.records++
	}
	c.filled = false
}

// rows is what has been counted, the last line included; false: it is no CSV.
func (c *rowCount) rows() (int64, bool) {
	c.end()
	return max(0, c.records-1), !c.binary
}
