package handlers

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding/unicode"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

func asCSV() *counter   { return &counter{quotes: true, header: 1} }
func asTSV() *counter   { return &counter{header: 1} }
func asLines() *counter { return &counter{} }

// countIn counts the rows of a text; -1: it has none.
func countIn(c *counter, text string) int64 {
	return c.rows(bufio.NewReader(strings.NewReader(text)), 1<<20)
}

type rowCase struct {
	text string
	want int64
}

func TestRowsOfACSVAreTheRecordsAfterTheHeader(t *testing.T) {
	for _, c := range []rowCase{
		{"", 0},
		{"\n\r\n", 0},
		{"id", 0},
		{"id\n", 0},
		{"id\n1", 1},
		{"id\n1\n2\n", 2},
		{"id\r\n1\r\n\r\n2\r\n", 2},
		{"id,t\n1,\"a\nb\"\n2,c\n", 2},
		{"id,t\n1,\"a\"\"\nb\"\n2,\n", 2},
		{"id,t\n1,\"\"\n2,c\n", 2},
		{"\"id\n\"\n\"\"\n2", 2},
		{"size\n5\" pipe\n6\" pipe\n", 2},
		{"size\n5\"\" pipe\n6\n", 2},
		{"a;b\n1;\"x\n;\"\n", 1},
		{"a\tb\n1\t\"x\n\"\n", 1},
		{"a|b\n1|\"x\n\"\n", 1},
		{"a\n\"never closed\n\n\n", 1},
		{"id\n\x01\n", 1},
		{"id\n\x00\n", -1}, // no CSV
		{"id\r1\r2\r", 2},  // of an old Mac
		{"id\r1\r2", 2},
		{"id\r\n1\n2\r3", 3},
		{"id\r\r1\n\n\r\n2", 2},
		{"id,t\r1,\"a\rb\"\r2,c\r", 2},
		{"\ufeffid\n1\n", 1},
		{"\ufeff\"id\n\"\n1\n", 1},
		{"sep=;\nid;t\n1;a\n", 1},
		{"\ufeffSEP=|\r\nid|t\r\n1|a\r\n", 1},
		{"sep=^\na^b\n1^\"x\ny\"\n", 1},
		{"sep=,x\n1\n", 1}, // a header
		{"a,b\n1,x;\"y\n", 1},
		{"id,t\n1,\"say \\\"hi\nthere\\\" you\"\n2,c\n", 2}, // fputcsv of PHP
		{"id,t\n1,\"ends\\\"\n2,\"a\nb\"\n", 2},             // a backslash at the end of a text
		{"id,t\n1,\"ends\\\"\n2,c\n", 2},
		{"id,t,u\n1,\"ends\\\",b\n2,c,d\n", 2},
		{"id,t\n1,\"ends\\\",\"then \"\"q\"\"\"\n", 1},
		{"id,t\n1,\"a\" \n2,c\n", 2},                // a space behind quotes
		{"id,t\n\"1\",\"5\\\"\"\n\"2\",\"b\"\n", 2}, // SELECT … INTO OUTFILE … ENCLOSED BY '"' of MySQL
		{"id,t,u\n1,\"5\\\"\",\"a\nb\"\n2,c,d\n", 2},
	} {
		if got := countIn(asCSV(), c.text); got != c.want {
			t.Errorf("%q: got %d rows, want %d", c.text, got, c.want)
		}
	}
	if got := countIn(&counter{quotes: true}, "1\n2\n"); got != 2 {
		t.Errorf("without a header: got %d rows, want 2", got)
	}
}

func TestEachLineOfATSVIsARecordWhateverQuotesItHas(t *testing.T) {
	for _, c := range []rowCase{
		{"id\tt\n1\t5\" disk\n2\t6\" disk\n3\t7\n4\t8\n", 4},
		{"id\tt\n1\t\"\n2\t\\n\n", 2},
		{"\"\n\"\n\"\n", 2},
		{"id\r\n1\r\n\r\n2", 2},
		{"a\tb\n\t\n", 1},
		{"\ufeffid\n1\n", 1},
		{"id\n\x00\n", -1},
	} {
		if got := countIn(asTSV(), c.text); got != c.want {
			t.Errorf("%q: got %d rows, want %d", c.text, got, c.want)
		}
	}
}

func TestEachLineOfJSONLinesIsARowUnlessItIsBlank(t *testing.T) {
	for _, c := range []rowCase{
		{"", 0},
		{"{\"a\":\"\\\"\"}\n\n{}", 2},
		{"{}\r\n  \r\n{}\r\n", 2},
		{" {}\n", 1},
		{"{}\n\x00\n", -1},
	} {
		if got := countIn(asLines(), c.text); got != c.want {
			t.Errorf("%q: got %d rows, want %d", c.text, got, c.want)
		}
	}
}

// TestRowsAreCountedAsTheStandardLibraryReadsThem writes random records, in pieces of random size.
func TestRowsAreCountedAsTheStandardLibraryReadsThem(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := randomCSV(random)
		records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		stopIf(t, err != nil, "%q: %v", text, err)
		c := counter{quotes: true, separators: ","}
		for rest := []byte(text); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			_, _ = c.Write(rest[:n])
			rest = rest[n:]
		}
		if got, want := c.records, int64(len(records)); got != want {
			t.Errorf("%q: got %d records, want %d as the library reads", text, got, want)
		}
	}
}

func randomCSV(random *rand.Rand) string {
	var text bytes.Buffer
	writer := csv.NewWriter(&text)
	writer.UseCRLF = random.IntN(2) == 0
	for range random.IntN(6) {
		record := make([]string, 3)
		for i := range record {
			for range random.IntN(5) {
				record[i] += (`"` + ",;\n\r\tab ")[random.IntN(9):][:1]
			}
		}
		_ = writer.Write(record)
	}
	writer.Flush()
	return text.String()
}

func TestRowsAreCountedInsideOfWhatIsPackedAndInUTF16(t *testing.T) {
	wide := check.Got(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(table))(t)
	big := check.Got(unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(table))(t)
	noMark := check.Got(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String(table))(t)
	for name, c := range map[string]rowCase{
		"gzip":                    {zipped(table), 2},
		"gzip in two parts":       {zipped(table) + zipped("3,d\n"), 3},
		"gzip that is cut off":    {zipped(table)[:20], -1},
		"gzip of which is little": {zipped(table)[:2], -1},
		"gzip of too much":        {zipped(strings.Repeat("1\n", 1<<19+1)), -1},
		"gzip of the most":        {zipped(strings.Repeat("1\n", 1<<19)), 1<<19 - 1},
		"gzip of a binary":        {zipped("PK\x00"), -1},
		"UTF-16, little endian":   {wide, 2},
		"UTF-16, big endian":      {big, 2},
		"UTF-16, packed":          {zipped(wide), 2},
		"UTF-16 without a mark":   {noMark, -1},
	} {
		if got := countIn(asCSV(), c.text); got != c.want {
			t.Errorf("%s: got %d rows, want %d", name, got, c.want)
		}
	}
	got := asCSV().rows(bufio.NewReader(iotest.OneByteReader(strings.NewReader(zipped(wide)))), 1<<20)
	if got != 2 {
		t.Errorf("a byte at a time: got %d rows, want 2", got)
	}
}

func zipped(text string) string {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zip, text)
	_ = zip.Close()
	return packed.String()
}

// TestTheRowsOfExportsAreCounted has the exports of programs: eight rows with quotes, breaks, backslashes, tabs, an empty text and NULL.
func TestTheRowsOfExportsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		counter *counter
		text    string
	}{
		"psql 15, text":     {asTSV(), "id\tt\n1\t5\" disk\n2\ta\\nb\n3\tback\\\\slash\\\\\n4\tsay \"hi\"\n5\t\"a\\nb\n6\t\n7\t\\N\n8\tt\\tb\n"},
		"psql 15, CSV":      {asCSV(), "id,t\n1,\"5\"\" disk\"\n2,\"a\nb\"\n3,back\\slash\\\n4,\"say \"\"hi\"\"\"\n5,\"\"\"a\nb\"\n6,\"\"\n7,\n8,t\tb\n"},
		"sqlite3 3.40, CSV": {asCSV(), "id,t\n1,\"5\"\" disk\"\n2,\"a\nb\"\n3,back\\slash\\\n4,\"say \"\"hi\"\"\"\n5,\"\"\"a\nb\"\n6,\"\"\n7,\n8,\"t\tb\"\n"},
	} {
		if got := countIn(c.counter, c.text); got != 8 {
			t.Errorf("%s: got %d rows, want 8", name, got)
		}
	}
}

// TestTheRowsThatExportersWriteAreCounted asks programs for the same five rows, with all that a text may have in it.
func TestTheRowsThatExportersWriteAreCounted(t *testing.T) {
	for program, c := range map[string]struct {
		debian string
		script []string
	}{
		"php": {"php-cli", []string{"-r", `$f = fopen("php://stdout", "w"); foreach ([["id", "t"], [1, "5\" disk"], [2, "a\nb"], [3, "back\\slash\\"],
			[4, "say \\\"hi\nthere\\\" you"], [5, "a\"\n\"b"]] as $row) fputcsv($f, $row, ",", "\"", "\\");`}},
		"python3": {"python3", []string{"-c", `import csv, sys; csv.writer(sys.stdout).writerows([["id", "t"], [1, "5\" disk"], [2, "a\nb"], [3, "back\\slash\\"],
			[4, "say \\\"hi\nthere\\\" you"], [5, "a\"\n\"b"]])`}},
	} {
		t.Run(program, func(t *testing.T) {
			testkit.RequireProgram(t, program, c.debian)
			output := check.Got(exec.Command(program, c.script...).Output())(t)
			if got := countIn(asCSV(), string(output)); got != 5 {
				t.Errorf("%q: got %d rows, want 5", output, got)
			}
		})
	}
}

func TestThePackedFileOfAFeedStaysAsItWasSent(t *testing.T) {
	body := zipped(table)
	f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		_, _ = io.WriteString(w, body)
	}, FetchOptions{})
	m := f.fetch(t.Context(), f.url+".gz")
	f.expect(success, m)
	if m.Metrics["rows"] != 2 || m.Metrics["bytes"] != float64(len(body)) {
		t.Errorf("got the metrics %v, want 2 rows and the bytes of the file", m.Metrics)
	}
	f.holds(body)
}
