//go:build unix

package demo

import (
	"os"

	"golang.org/x/sys/unix"
)

// The size of a terminal that does not tell its own.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// ScreenOf returns the screen of a terminal. It is asked anew each time, so that it may change its size.
func ScreenOf(terminal *os.File) Screen {
	return func() (width, height int) {
		size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 || size.Row == 0 {
			return defaultWidth, defaultHeight
		}
		return int(size.Col), int(size.Row)
	}
}
