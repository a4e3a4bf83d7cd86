//go:build unix

package handlers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// commanding is an attempt with a command in its payload.
func commanding(t *testing.T, command any) *worker.Attempt {
	t.Helper()
	attempt := example()
	attempt.Payload = check.Got(json.Marshal(map[string]any{"command": command}))(t)
	return attempt
}

func TestTheCommandOfThePayloadIsRunAsCronWould(t *testing.T) {
	var out check.Buffer
	handler := check.Got(Shell(nil, ExecOptions{Stdout: &out, Stderr: &out}))(t)
	must(t, handler(t.Context(), commanding(t, `cd / && printf '%s\n' "$PWD $REFRESHD_UID" 'a  "b"'; cat`)))
	equal(t, "/ m\na  \"b\"\n", out.String()) // and nothing on stdin

	_, got := try(t.Context(), t, handler, commanding(t, "echo no such feed >&2; exit 3"))
	failIf(t, got.Type != model.MessageFailure || got.Reason != "no such feed" || got.ErrorType != "exit_3" || got.Retryable != nil,
		"expected a failure with the last line, found %+v", got)
}

func TestAPayloadWithoutACommandIsAFailureThatThePolicyDecidesOn(t *testing.T) {
	handler := check.Got(Shell(nil, ExecOptions{}))(t)
	for _, command := range []any{nil, "", " ", 7, []string{"true"}, "true\x00"} {
		_, got := try(t.Context(), t, handler, commanding(t, command))
		failIf(t, got.Retryable != nil || got.Type != model.MessageFailure || got.ErrorType != "shell_refused", "%v: expected a failure, found %+v", command, got)
	}
}

// Each command that must not run would leave a file.
func TestNoCommandGetsAroundTheAllowedOnes(t *testing.T) {
	dir := t.TempDir()
	allowed := []string{"true", "cd " + dir + " && touch -- ", "touch '" + dir + "/exactly this'"}
	_, err := Shell(allowed, ExecOptions{})
	failIf(t, err == nil, "expected a prefix that ends with a space to be refused")
	allowed[1] = "cd " + dir + " && touch --"
	handler := check.Got(Shell(allowed, ExecOptions{}))(t)
	for command, want := range map[string]bool{
		"true": true, "true a.b-c_d /e:f=g,h@i%j+k": true, allowed[1] + " well": true, allowed[2]: true,

		"": false, "truex": false, "false": false, " true": false, "touch x": false, "true; touch x": false, "true && touch x": false, "true || touch x": false,
		"true & touch x": false, "true | touch x": false, "true\ntouch x": false, "true \ntouch x": false, "true \rtouch x": false, "true $(touch x)": false,
		"true `touch x`": false, "true > x": false, "true ${x}": false, "true $x": false, "true 'a'": false, `true "a"`: false, `true \a`: false, "true *": false,
		"true ~": false, "true {a,b}": false, "true [a]": false, "true ?": false, "true #a": false, "true !a": false, "true ^a": false, "true <(touch x)": false,
		"true\ttouch": false, "true é": false, "true\u00a0a": false, allowed[2] + "; touch x": false,
	} {
		_, got := try(t.Context(), t, handler, commanding(t, command))
		failIf(t, (got.Type == model.MessageSuccess) != want, "%q: expected it to run: %v, found %+v", command, want, got)
	}
	left := check.Got(filepath.Glob(filepath.Join(dir, "*")))(t)
	_, err = os.Stat("x")
	failIf(t, len(left) != 2 || err == nil, "expected the files of the allowed commands, found %v", left)
}

func TestAShellIsNotStartedForAnEmptyPrefix(t *testing.T) {
	for _, wrong := range []string{"", " ", " true", "true\n"} {
		failIf(t, check.Only(Shell([]string{wrong}, ExecOptions{})) == nil, "expected the prefix %q to be refused", wrong)
	}
}
