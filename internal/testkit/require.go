package testkit

import (
	"os"
	"os/exec"
	"testing"
)

// RequireProgram skips the test when the program is not installed, and says which Debian package has it. When the
// environment variable CI is not empty it fails instead: there, a test that does not run is a test that is lost.
func RequireProgram(t testing.TB, name, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	const advice = "%s not found in PATH: apt-get install %s"
	if os.Getenv("CI") != "" {
		t.Fatalf(advice, name, debianPackage)
	}
	t.Skipf(advice, name, debianPackage)
}
