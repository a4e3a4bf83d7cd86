package chart

import (
	"bytes"
	"html"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func tree(name string) Tree {
	at := func(clock string) time.Time { return instant("2026-03-02T" + clock + ":00Z") }
	waits := Tree{Title: "tbl_1", Location: time.UTC, Now: at("05:44"), Start: at("06:00"), Begins: "starts at 06:00", Branches: []Branch{
		{Kind: Success, At: at("06:00"), Ends: "succeeds", Next: at("18:00"), Follows: "next refresh at 18:00"},
		{Kind: Failure, At: at("06:00"), Ends: "fails", Next: at("06:05"), Follows: "tries again at 06:05"},
		{Kind: Timeout, At: at("06:30"), Ends: "no answer by 06:30", Disabled: true, Follows: "gives up, until somebody acts"},
	}}
	if name == "hostile" {
		waits.Title, waits.Begins = `<script>`, strings.Repeat(`starts "<b>" `, 20)
		for i := range waits.Branches {
			waits.Branches[i].Ends, waits.Branches[i].Follows = strings.Repeat("<i>", 60), strings.Repeat("&", 200)
		}
	}
	return waits
}

func TestATreeLooksAsItDidBefore(t *testing.T) {
	var got bytes.Buffer
	must(t, tree("waits").SVG(&got))
	compare(t, filepath.Join("testdata", "tree.svg"), got.Bytes())
}

var placed = regexp.MustCompile(`<text class="[a-z]+" x="([0-9.]+)" y="[0-9.]+">(.*)</text>`)

func TestEachTextOfATreeStandsWithinItsPictureAndIsHarmless(t *testing.T) {
	for _, name := range []string{"waits", "hostile"} {
		var got bytes.Buffer
		must(t, tree(name).SVG(&got))
		failIf(t, strings.Contains(got.String(), "<script>") || strings.Contains(got.String(), "<b>"), "expected no markup of others, found\n%s", &got)
		texts := placed.FindAllStringSubmatch(got.String(), -1)
		failIf(t, len(texts) < 8, "expected a text for each branch and what follows, found %q", texts)
		for _, text := range texts {
			x, _ := strconv.ParseFloat(text[1], 64)
			width := float64(widthOf(html.UnescapeString(text[2])))
			failIf(t, x < 0 || x+width > float64(treeWidth), "%s at %s does not fit", text[2], text[1])
		}
	}
}

func TestATreeIsToldInWordsToo(t *testing.T) {
	equal(t, "starts at 06:00; succeeds: next refresh at 18:00; fails: tries again at 06:05; no answer by 06:30: gives up, until somebody acts", tree("waits").Alt())
}
