package handlers

import "testing"

// A file system that cannot sync a directory is no reason to fail: procfs is one.
func TestADirectoryThatCannotBeSyncedIsNoError(t *testing.T) {
	err := syncDir("/proc")
	failIf(t, err != nil, "want no error, got %v", err)
	err = syncDir(t.TempDir() + "/gone")
	failIf(t, err == nil, "want an error for a directory that is not there")
}
