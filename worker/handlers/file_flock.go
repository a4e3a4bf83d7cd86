//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package handlers

import (
	"errors"
	"os"
	"syscall"
)

// lock marks a file as being in use until it is closed, also when its process is killed.
func lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) {
		return nil // a file system without locks: leftovers look like living files
	}
	return err
}

// syncDir makes a rename last through a crash of the machine.
func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := file.Sync(); !errors.Is(err, syscall.EINVAL) { // some network file systems cannot
		return err
	}
	return nil
}
