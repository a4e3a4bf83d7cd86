package handlers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/refreshd/refreshd/worker"
)

// download is one body on its way into a file. One goroutine only.
type download struct {
	ctx      context.Context
	attempt  *worker.Attempt
	source   *url.URL
	response *http.Response
	path     string
	most     int64 // bytes

	bytes int64
	hash  hash.Hash
	rows  rowCount
	body  error // what went wrong with the body, and not with the file
}

var errTooLarge = errors.New("the file is too large")

// receive copies the body and makes way for the new file: a sidecar must never vouch for another file than its own, and what
// is stale by now must not replace anything.
func (d *download) receive(file io.Writer) error {
	d.hash = sha256.New()
	_, err := io.Copy(io.MultiWriter(file, d.hash, &d.rows), d)
	if err != nil {
		return err
	}
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	return ignoreMissing(os.Remove(sidecarPath(d.path)))
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
	if n > 0 {
		d.report()
	}
	return n, err
}

func (d *download) report() {
	total := d.response.ContentLength
	if total <= 0 {
		d.attempt.Status("Downloading: "+size(d.bytes), -1)
		return
	}
	d.attempt.Status(fmt.Sprintf("Downloading: %s of %s", size(d.bytes), size(total)), int(d.bytes*100/total))
}

// finish tells what has arrived.
func (d *download) finish() {
	text := "Downloaded " + size(d.bytes)
	if rows, ok := d.rows.rows(); ok {
		text = fmt.Sprintf("Downloaded %d rows, %s", rows, size(d.bytes))
		if rows == 1 {
			text = "Downloaded 1 row, " + size(d.bytes)
		}
	}
	d.attempt.Status(text, 100)
}

// failure sorts what went wrong by whom it concerns: the end of the context, the owner, the network, or this machine.
func (d *download) failure(err error) error {
	switch {
	case d.ctx.Err() != nil:
		return context.Cause(d.ctx)
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

// size renders a number of bytes for people.
func size(bytes int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); bytes >= one {
			return fmt.Sprintf("%.1f %s", float64(bytes)/float64(one), unit)
		}
	}
	return fmt.Sprintf("%d B", bytes)
}
