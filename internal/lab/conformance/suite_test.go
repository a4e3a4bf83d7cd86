package conformance_test

import (
	"os/exec"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// suites test what applications test their workers with, each in the style of its language. PHP has no phpredis.
var suites = map[string][]string{
	"python": {"-m", "unittest", "discover", "-s", "clients/python/tests"},
	"node":   {"--test", "clients/node/test/testing.test.js"},
	"php":    {"-n", "clients/php/test/testing.php"},
}

func TestTheSuitesOfTheClientsPassWithoutRedis(t *testing.T) {
	for language, words := range suites {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			program, environ := "php", []string(nil)
			if language == "php" {
				testkit.RequireProgram(t, "php", "php-cli")
			} else {
				program, environ = testkit.Interpreter(t, language)
			}
			suite := exec.CommandContext(t.Context(), program, words...)
			suite.Dir = fromRoot(t, ".")
			suite.Env = append(suite.Environ(), append(environ, "PYTHONDONTWRITEBYTECODE=1", "REDIS_URL=redis://"+testkit.Nowhere)...)
			output, err := suite.CombinedOutput()
			failIf(t, err != nil, "%v\n%s", err, output)
		})
	}
}
