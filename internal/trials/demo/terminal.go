package demo

import (
	"os"

	"golang.org/x/term"
)

// The size of a terminal that does not tell its own.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// ScreenOf returns the screen of a terminal. It is asked anew each time, so that it may change its size.
func ScreenOf(terminal *os.File) Screen {
	return func() (width, height int) {
		width, height, err := term.GetSize(int(terminal.Fd()))
		if err != nil || width == 0 || height == 0 {
			return defaultWidth, defaultHeight
		}
		return width, height
	}
}
