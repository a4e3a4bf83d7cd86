package documents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

const firstWorker = "docs/first-worker.md"

// chapters are the command blocks of the page that are run, by their headings, and the headings in their order.
func chapters(t testing.TB) (titles []string, blocks map[string][]*block) {
	t.Helper()
	lines, all := read(t, firstWorker)
	within, found := inBlocks(all), commands(t, firstWorker)
	blocks = map[string][]*block{}
	for i, line := range lines {
		if strings.HasPrefix(line, "#") && !within[i+1] {
			titles = append(titles, strings.TrimLeft(line, "# "))
		}
		for len(found) > 0 && found[0].line-2 == i {
			if title := titles[len(titles)-1]; !strings.HasPrefix(found[0].marker, markNotRun) {
				blocks[title] = append(blocks[title], found[0])
			}
			found = found[1:]
		}
	}
	return titles, blocks
}

func TestACronScriptBecomesAWorkerThatFailsIsMendedAndRecovers(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := newSession(t, firstWorker)
	titles, blocks := chapters(t)
	for _, title := range titles[:slices.Index(titles, otherLanguages)] {
		s.add(blocks[title]...)
	}
	s.script.WriteString("cmp shop_b.csv feeds/shop_b.csv\nrm shop_?.csv\npython3 before.py\ncmp shop_b.csv feeds/shop_b.csv\n")
	s.run()
}

const otherLanguages = "The same worker in other languages"

// served waits until the worker has loaded one table and has reported that the other one is missing.
const served = `for _ in $(seq 600); do
  cmp -s shop_a.csv feeds/shop_a.csv && refreshd history shop_a | grep -q success && refreshd history shop_b | grep -q 'failure.*404' && exit
  sleep 0.05
done
refreshd history shop_a; refreshd history shop_b; exit 1
`

func TestTheSameWorkerSucceedsAndFailsInEachLanguage(t *testing.T) {
	long.Only(t)
	testkit.RequireProgram(t, "curl", "curl")
	testkit.RequireProgram(t, "jq", "jq")
	titles, blocks := chapters(t)
	languages := titles[slices.Index(titles, otherLanguages)+1:]
	if len(languages) < 5 {
		t.Fatalf("want a section for each language, got %v", languages)
	}
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, firstWorker)
			for _, chapter := range []string{"Two feeds, and refreshd", "The models", language} {
				s.add(blocks[chapter]...)
			}
			s.script.WriteString(served)
			s.run()
		})
	}
}

func TestTheFilesOfTheFirstWorkerAreThoseOfTheExample(t *testing.T) {
	examples := filepath.Join(root, "examples", "cron-script")
	files := 0
	for _, b := range commands(t, firstWorker) {
		if name, is := strings.CutPrefix(b.marker, markFile); is {
			files++
			text := string(check.Got(os.ReadFile(filepath.Join(examples, name)))(t))
			if shown := strings.Join(b.lines, "\n") + "\n"; shown != text {
				t.Errorf("%s line %d: want the text of examples/cron-script/%s, got\n%s", firstWorker, b.line, name, shown)
			}
		}
	}
	if files < 7 {
		t.Errorf("want the files of the page compared, got %d", files)
	}
}
