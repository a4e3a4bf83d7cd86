//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package handlers

import "os"

// lock does nothing here: Windows refuses to remove a file that is open.
func lock(*os.File) error { return nil }

// syncDir does nothing here: directories cannot be synced everywhere.
func syncDir(string) error { return nil }
