//go:build !linux

package testkit

import "syscall"

// DieWithParent has no counterpart here: a program outlives a test process that was killed.
func DieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// reserve has no counterpart here: another test may draw the same port.
func reserve(string) bool { return true }
