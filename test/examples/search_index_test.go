package examples

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestTheSearchIndexIsRebuiltForEachChangeAndReplacedInOneStep(t *testing.T) {
	long.Only(t)
	t.Parallel()
	testkit.RequireProgram(t, "curl", "curl")
	address := testkit.FreeAddress(t)
	s := newStack(t, "search-index", "node", "127.0.0.1:8000", address, "0.0.0.0:8000", address)
	s.follow()

	// A document that is saved while the index is being built: the worker waits for a pipe among the documents, behind all others.
	pipe := filepath.Join(s.dir, "documents", "z.txt")
	must(t, syscall.Mkfifo(pipe, 0o600))
	index := filepath.Join(s.volumes, "index", "index.json")
	before := check.Got(os.Open(index))(t)
	t.Cleanup(func() { _ = before.Close() })
	old := check.Got(io.ReadAll(before))(t)
	var writer *os.File
	check.Eventually(t, "the worker reads", func() (reads bool) {
		_ = s.command("refreshd", "/refreshd", "model", "run", "articles").Run() // refused while one runs
		var err error
		writer, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	check.Got(s.run("curl -s -X PUT --data-binary crane http://127.0.0.1:8000/documents/crane.txt"))(t)
	must(t, os.Remove(pipe))
	must(t, writer.Close())
	check.Eventually(t, "it is found", func() bool {
		output, _ := s.run("curl -s http://127.0.0.1:8000/search?q=crane")
		return strings.Contains(output, "crane.txt")
	})
	check.Got(before.Seek(0, io.SeekStart))(t)
	failIf(t, !bytes.Equal(check.Got(io.ReadAll(before))(t), old), "want the index replaced, it was written over")
	left := check.Got(filepath.Glob(filepath.Dir(index) + "/*"))(t)
	failIf(t, len(left) != 1, "want the index alone where it is written, got %v", left)
}
