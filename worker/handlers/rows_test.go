package handlers

import (
	"bytes"
	"encoding/csv"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestRowsAreTheRecordsAfterTheHeader(t *testing.T) {
	for text, want := range map[string]int64{
		"":                           0,
		"\n\r\n":                     0,
		"id":                         0,
		"id\n":                       0,
		"id\n1":                      1,
		"id\n1\n2\n":                 2,
		"id\r\n1\r\n\r\n2\r\n":       2,
		"id,t\n1,\"a\nb\"\n2,c\n":    2,
		"id,t\n1,\"a\"\"\nb\"\n2,\n": 2,
		"id,t\n1,\"\"\n2,c\n":        2,
		"\"id\n\"\n\"\"\n2":          2,
		"size\n5\" pipe\n6\" pipe\n": 2,
		"size\n5\"\" pipe\n6\n":      2,
		"a;b\n1;\"x\n;\"\n":          1,
		"a\tb\n1\t\"x\n\"\n":         1,
		"a\n\"never closed\n\n\n":    1,
	} {
		var c rowCount
		_, _ = c.Write([]byte(text))
		if got, ok := c.rows(); got != want || !ok {
			t.Errorf("%q: %d rows, %v; want %d", text, got, ok, want)
		}
	}
}

func TestAFileWithAZeroByteHasNoRowsToTell(t *testing.T) {
	for text, want := range map[string]bool{"id\n\x00\n": false, "id\n\x01\n": true} {
		var c rowCount
		_, _ = c.Write([]byte(text))
		if _, ok := c.rows(); ok != want {
			t.Errorf("%q: told %v, want %v", text, ok, want)
		}
	}
}

// TestRowsAreCountedAsTheStandardLibraryReadsThem writes random records, in pieces of random size.
func TestRowsAreCountedAsTheStandardLibraryReadsThem(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := randomCSV(random)
		records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var c rowCount
		for rest := []byte(text); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			_, _ = c.Write(rest[:n])
			rest = rest[n:]
		}
		if got, _ := c.rows(); got != int64(max(0, len(records)-1)) {
			t.Errorf("%q: %d rows, the library reads %d records", text, got, len(records))
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

func BenchmarkRows(b *testing.B) {
	text := []byte(strings.Repeat("12345,\"some text, quoted\",more text\n", 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var c rowCount
		_, _ = c.Write(text)
	}
}
