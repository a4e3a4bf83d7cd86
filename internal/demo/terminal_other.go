//go:build !unix

package demo

import "os"

// ScreenOf returns a screen of the usual size.
func ScreenOf(*os.File) Screen {
	return func() (width, height int) { return 80, 24 }
}
