package store

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// callCase is one call of a daemon or a person, with everything that Redis holds before and after.
type callCase struct {
	name string
	seed keys
	call func(b *bench) any
	says any  // what the call returns
	want keys // nil: as before, down to the ids of stream entries
}

func eachCall(t *testing.T, cases []callCase) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, test := range cases {
			t.Run(test.name, func(t *testing.T) {
				b := b.fresh(t)
				b.seed(test.seed)
				act := func() { expectEqual(t, "answer", test.says, test.call(b)) }
				if test.want == nil {
					b.unchanged(act)
					return
				}
				act()
				b.expect(test.want)
			})
		}
	})
}

// go-redis sends the text of a script that Redis does not know. A user who may only run loaded scripts is refused that.
func TestNoCallSendsTheTextOfAScript(t *testing.T) {
	files, err := filepath.Glob("*.go")
	stopIf(t, err != nil || len(files) == 0, "%v, %v", files, err)
	sends := regexp.MustCompile(`\.(Run|RunRO|Eval|EvalRO)\(ctx`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		found := sends.FindString(string(text))
		failIf(t, found != "" && !strings.HasSuffix(file, "_test.go"), "%s: expected scripts to be run by their digests, found %s", file, found)
	}
}
