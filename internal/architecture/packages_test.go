package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestEachClientOfAReleaseIsInstalledByItsOwnTool(t *testing.T) {
	long.Only(t)
	dist, version := t.TempDir(), versionOf(t, "../..")
	execute(t, "../..", nil, "go run ./deploy/packages -version "+version+" -created 1790000000 -o "+dist)
	for name, install := range map[string]func(t *testing.T, dist, version string){"pip": pipInstalls, "npm": npmInstalls, "composer": composerLoads} {
		t.Run(name, func(t *testing.T) { install(t, dist, version[1:]) })
	}
}

// pipInstalls installs the wheel, and compares it with what setuptools build from the source.
func pipInstalls(t *testing.T, dist, version string) {
	t.Helper()
	testkit.RequireProgram(t, "pip3", "python3-pip")
	python, environ := testkit.Interpreter(t, "python")
	pip := func(command string) string {
		return execute(t, dist, environ, python+" -m pip "+command+" --quiet --no-cache-dir --no-index --no-deps")
	}
	wheel := "refreshd-" + version + "-py3-none-any.whl"
	pip("install --target installed " + wheel)
	told := execute(t, dist, append(environ, "PYTHONPATH=installed"), python+" -c 'import refreshd; print(refreshd.__file__, refreshd.__version__)'")
	failIf(t, !strings.HasSuffix(told, "installed/refreshd.py "+version+"\n"), "expected the client of version %s, found %s", version, told)

	pip("wheel --no-build-isolation --wheel-dir built refreshd-" + version + ".tar.gz")
	execute(t, dist, nil, python+" -m zipfile -e built/"+wheel+" again")
	for _, name := range []string{"refreshd.py", "refreshd-" + version + ".dist-info/METADATA", "refreshd-" + version + ".dist-info/LICENSE"} {
		ours, theirs := check.Got(os.ReadFile(filepath.Join(dist, "installed", name)))(t), check.Got(os.ReadFile(filepath.Join(dist, "again", name)))(t)
		equal(t, string(ours), strings.Replace(string(theirs), "redis (>=4)", "redis>=4", 1)) // older setuptools write the brackets
	}
}

// npmInstalls gives npm a package redis that hands on that of the system, as npm may not ask its registry.
func npmInstalls(t *testing.T, dist, version string) {
	t.Helper()
	node, environ := testkit.Interpreter(t, "node")
	tarball, install := filepath.Join(dist, "refreshd-"+version+".tgz"), "npm install --offline --no-audit --no-fund "
	if _, err := exec.LookPath("npm"); err != nil {
		install = "mkdir -p node_modules/refreshd && tar -x --strip-components=1 -C node_modules/refreshd -f "
	}
	app := t.TempDir()
	environ = append(environ, "npm_config_cache="+filepath.Join(app, "cache"))
	must(t, os.Mkdir(filepath.Join(app, "redis"), 0o700))
	for name, text := range map[string]string{
		"package.json":       `{"dependencies": {"redis": "file:redis"}}`,
		"redis/package.json": `{"name": "redis", "version": "4.5.1"}`,
		"redis/index.js":     `module.exports = require(process.env.NODE_PATH + '/redis');`,
	} {
		must(t, os.WriteFile(filepath.Join(app, name), []byte(text), 0o600))
	}
	execute(t, app, environ, install+tarball)
	told := execute(t, app, environ, node+` -e "const { Worker } = require('refreshd'); console.log(typeof Worker, require('refreshd/package.json').version)"`)
	equal(t, "function "+version+"\n", told)
	has := execute(t, app, nil, "cd node_modules/refreshd && ls")
	equal(t, "LICENSE\nREADME.md\npackage.json\nrefreshd.d.ts\nrefreshd.js\n", has)
}

// composerLoads unpacks the package and loads what its autoload names, as composer does.
func composerLoads(t *testing.T, dist, version string) {
	t.Helper()
	testkit.RequireProgram(t, "python3", "python3")
	php, environ := testkit.Interpreter(t, "php")
	execute(t, dist, nil, "python3 -m zipfile -e refreshd-php-"+version+".zip unpacked")
	load := `$is = json_decode(file_get_contents("composer.json")); foreach ($is->autoload->files as $file) require $file; ` +
		`echo $is->version, class_exists("Refreshd\\Worker") ? " has Worker" : "", file_exists("LICENSE") ? " and licence" : "";`
	equal(t, version+" has Worker and licence", execute(t, filepath.Join(dist, "unpacked"), environ, php+" -r '"+load+"'"))
}
