package examples

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestTheProductFeedsAreLoadedWholeOrNotAtAllAndABrokenRowIsToldToItsOwner(t *testing.T) {
	long.Only(t)
	t.Parallel()
	testkit.RequireProgram(t, "psql", "postgresql-client")
	web := &feeds{}
	postgres := startPostgres(t)
	s := newStack(t, "product-feeds", "python with psycopg", "http://feeds/", web.serve(t), "postgres:5432", postgres)
	web.dir = filepath.Join(s.dir, "feeds")
	s.environ = append(s.environ, "PGHOST=127.0.0.1", "PGPORT="+postgres[len("127.0.0.1:"):])
	s.prepare("postgres", "psql", "-q", "-U", "postgres", "-f")
	s.follow()

	// A feed that is cut off at the end of a line, and one without any product, look well and are not.
	web.cutOff(true)
	s.runModel("hats")
	s.expect("model history hats", "1 bytes are missing")
	web.cutOff(false)
	must(t, os.WriteFile(filepath.Join(web.dir, "hats.csv"), []byte("sku,name,price\n"), 0o600))
	s.runModel("hats")
	s.expect("model history hats", "line 2: expected a product, found none")
	rows := check.Got(s.run(`docker compose exec postgres psql -U postgres -At -c "SELECT sku FROM products WHERE feed = 'hats'"`))(t)
	failIf(t, rows != "H1\nH2\n", "want the products of the last whole feed, got %q", rows)
}
