package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// showProgress returns what reads the same, and shows on the terminal how far it has come. Without a terminal for complaints, or with one
// that is full of results already, it shows nothing.
func (a *app) showProgress(in io.Reader) io.Reader {
	errors, is := a.stderr.(*os.File)
	if !is || !isTerminal(errors) || isTerminal(a.stdout) {
		return in
	}
	size := int64(-1)
	if file, is := in.(*os.File); is {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	bar := progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(errors), progressbar.OptionShowBytes(true), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	read := progressbar.NewReader(in, bar)
	return &read
}
