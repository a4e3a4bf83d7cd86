package handlers

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	source   *url.URL // without parameters that it does not depend on
	response *http.Response
	path     string
	most     int64   // bytes
	known    sidecar // of the file that it replaces; empty: nothing is known

	wire  int64 // bytes of the body as it comes
	end   error // of the connection
	body  error // the error of the body, and not of the file
	bytes int64 // of the file
	hash  hash.Hash
	rows  int64 // -1: it has none
	doubt error // why it is not to be published; nil: it is
}

var errTooLarge = errors.New("the file is too large")

// receive copies the body. A stale attempt must not replace anything.
func (d *download) receive(file io.Writer) error {
	d.hash = sha256.New()
	copied := bufio.NewWriterSize(io.MultiWriter(file, d.hash), 32<<10) // it repeats its first error
	err := d.copyTo(copied)
	_ = d.response.Body.Close() // the next steps do not wait for the server; an archive may end before its end was read
	if err := copied.Flush(); err != nil {
		return err
	}
	d.body = err
	return cmp.Or(err, context.Cause(d.ctx))
}

// copyTo unpacks the body, and detects its format.
func (d *download) copyTo(file io.Writer) error {
	unpacked, err := unpack(d, d.response.Header)
	if err != nil {
		return err
	}
	limited := &io.LimitedReader{R: unpacked, N: d.most + 1}
	body := bufio.NewReaderSize(io.TeeReader(limited, file), 32<<10)
	head, _ := body.Peek(512) // an error comes again
	isPage := isHTML(d.response.Header.Get("Content-Type"), head)
	if err := d.checkPage(isPage); err != nil {
		return err
	}
	d.rows = -1
	if counter := counterOf(d.response, d.source); counter != nil && !isPage {
		d.rows = counter.rows(body, d.most)
	}
	_, err = io.Copy(io.Discard, body)
	if d.bytes = d.most + 1 - limited.N; d.bytes > d.most {
		return errTooLarge
	}
	return err
}

// publish reports the feed and replaces the file, unless a guard doubts the numbers or a later attempt was here. A sidecar must never vouch for
// another file.
func (d *download) publish(written string) error {
	meta := d.meta()
	meta.report(d.attempt)
	if meta.SHA256 == d.known.SHA256 {
		d.attempt.Unchanged()
	} else if d.attempt.Guarded() {
		if d.doubt = d.attempt.Ready(d.ctx); d.doubt != nil {
			return d.doubt
		}
	}
	err := publish(d.ctx, d.path, d.attempt.Fence, func() error {
		if err := d.rename(written); err != nil {
			return err
		}
		return writeSidecar(d.path, meta)
	})
	if err == nil {
		d.attempt.Status("Downloaded "+meta.String(), 100)
	}
	return err
}

func (d *download) rename(written string) error {
	if err := ignoreMissing(os.Remove(sidecarPath(d.path))); err != nil {
		return err
	}
	return os.Rename(written, d.path)
}

func (d *download) meta() sidecar {
	meta := sidecar{
		URL: digest(d.source.String()), validators: validatorsOf(d.response),
		Bytes: d.bytes, SHA256: hex.EncodeToString(d.hash.Sum(nil)), Fence: d.attempt.Fence,
	}
	if d.rows >= 0 {
		meta.Rows = &d.rows
	}
	return meta
}

// Read passes on the body and reports the progress.
func (d *download) Read(p []byte) (int, error) {
	n, err := d.response.Body.Read(p)
	d.wire += int64(n)
	d.end = err
	switch total := d.response.ContentLength; {
	case n == 0:
	case total > 0:
		d.attempt.Status(fmt.Sprintf("Downloading: %s of %s", size(d.wire), size(total)), int(d.wire*100/total))
	default:
		d.attempt.Status("Downloading: "+size(d.wire), -1)
	}
	return n, err
}

// failure sorts errors by whom they concern: the end of the context, the owner, the network, or this machine.
func (d *download) failure(err error) error {
	switch {
	case d.ctx.Err() != nil:
		return context.Cause(d.ctx)
	case d.doubt != nil:
		return d.doubt
	case errors.Is(err, errOvertaken):
		return err
	case errors.Is(err, errTooLarge):
		err = fmt.Errorf("%w: expected at most %d bytes", errTooLarge, d.most)
		return ownersFault(err, "too_large", "The feed is larger than the "+size(d.most)+" that are allowed.")
	case errors.Is(err, errPage):
		return worker.ErrorType(worker.UserFriendly(err, "The address gave a web page in place of the feed."), "html")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return worker.ErrorType(fmt.Errorf("the body is cut off after %d bytes", d.wire), "truncated")
	case d.end != nil && !errors.Is(d.end, io.EOF):
		return requestError(d.ctx, fmt.Errorf("read the body: %w", d.end))
	case d.body != nil:
		return worker.ErrorType(worker.UserFriendly(fmt.Errorf("unpack the body: %w", err), "The feed is packed in a way that is not understood."), "coding")
	default:
		return worker.ErrorType(worker.Reason(fmt.Errorf("write the file: %w", err), "the file cannot be written"), "disk")
	}
}

func size(bytes int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); bytes >= one {
			return fmt.Sprintf("%.1f %s", float64(bytes)/float64(one), unit)
		}
	}
	return fmt.Sprintf("%d B", bytes)
}
