package testkit

import (
	"os"
	"os/exec"
	"testing"
)

// interpreter is a language in which a worker may be written.
type interpreter struct {
	programs []string // the first that knows Redis is taken
	probe    []string // arguments with which one that knows Redis succeeds
	packages string   // of Debian
}

var interpreters = map[string]interpreter{
	"python": {[]string{"python3", "/usr/bin/python3"}, []string{"-c", "import redis"}, "python3 python3-redis"},
	"node":   {[]string{"node"}, []string{"-e", "require('redis')"}, "nodejs node-redis"},
	"php":    {[]string{"php"}, []string{"-r", "exit(extension_loaded('redis') ? 0 : 1);"}, "php-cli php-redis"},
}

// Interpreter returns the program of a language, python, node or php, that has the usual client of Redis, and an environment in which it finds
// that. Without one it skips the test, or fails it in CI, as RequireProgram does.
func Interpreter(t testing.TB, language string) (program string, environ []string) {
	t.Helper()
	wanted, environ := interpreters[language], append(os.Environ(), "NODE_PATH=/usr/share/nodejs") // where Debian has node-redis
	for _, program := range wanted.programs {
		probe := exec.Command(program, wanted.probe...)
		if probe.Env = environ; probe.Run() == nil {
			return program, environ
		}
	}
	const advice = "%s with a client of Redis not found: apt-get install %s"
	if os.Getenv("CI") != "" {
		t.Fatalf(advice, language, wanted.packages)
	}
	t.Skipf(advice, language, wanted.packages)
	return "", nil
}
