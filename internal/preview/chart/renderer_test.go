package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"
)

func render(t rapid.TB, with func(io.Writer, ...Chart) error, charts []Chart) string {
	t.Helper()
	var text bytes.Buffer
	if err := with(&text, charts...); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// pieces are what texts from outside are made of, at their worst.
var pieces = []string{"</text><script>alert(1)</script>", ":", ";", "\n", "\r", "\x1b[2J", "\x00", "\u202e",
	"\uFFFE", "\xff", "<![CDATA[", "]]>", "&", `"`, "'", "section x", "retry 1/6 +5m, planned first: overlaps", "漢字", "🚀", "a", " ", "\u2028"}

var anyText = rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "pieces"), "")
})

// anyTime is mostly near, sometimes far away or none.
var anyTime = rapid.Custom(func(t *rapid.T) time.Time {
	near := instant("2026-03-28T20:00:00Z")
	switch rapid.IntRange(0, 20).Draw(t, "when") {
	case 0:
		return time.Time{}
	case 1:
		return time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "unix"), 0)
	case 2, 3, 4, 5:
		return near.Add(time.Duration(rapid.Int64Range(0, 40*24*3600).Draw(t, "far")) * time.Second)
	default:
		return near.Add(time.Duration(rapid.Int64Range(0, 9*3600*1000).Draw(t, "ms")) * time.Millisecond)
	}
})

var kinds = []Kind{Start, Retry, Success, Failure, Timeout, Postponed, Interrupted, Withdrawn, QueueTimeout, Superseded,
	Exhausted, Disabled, Finished, Skipped, "", "<unknown>:"}

var anyEvent = rapid.Custom(func(t *rapid.T) Event {
	return Event{
		At: anyTime.Draw(t, "at"), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), AttemptNo: rapid.IntRange(-1, 9).Draw(t, "no"),
		RefreshAt: anyTime.Draw(t, "refresh"), DeadlineAt: anyTime.Draw(t, "deadline"),
		Why: anyText.Draw(t, "why"), Reason: anyText.Draw(t, "reason"), RetryAt: anyTime.Draw(t, "retry"),
	}
})

func anyChart(zones []*time.Location) *rapid.Generator[Chart] {
	return rapid.Custom(func(t *rapid.T) Chart {
		return Chart{
			Title: anyText.Draw(t, "title"), Location: rapid.SampledFrom(zones).Draw(t, "zone"),
			Start: anyTime.Draw(t, "start"), End: anyTime.Draw(t, "end"),
			Events: rapid.SliceOfN(anyEvent, 0, 60).Draw(t, "events"), Planned: rapid.SliceOfN(anyTime, 0, 10).Draw(t, "planned"),
		}
	})
}

// TestWhateverHappensCanBeShown draws random runs: nothing panics, and no text from outside is more than a text.
func TestWhateverHappensCanBeShown(t *testing.T) {
	anyChart := anyChart([]*time.Location{nil, time.UTC, zone(t, "Europe/Berlin"), zone(t, "Asia/Kathmandu")})
	rapid.Check(t, func(t *rapid.T) {
		charts := rapid.SliceOfN(anyChart, 0, 3).Draw(t, "charts")
		checkSVG(t, render(t, SVG, charts))
		checkTable(t, render(t, Table, charts))
	})
}

var (
	knownElements   = []string{"svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "text"}
	knownAttributes = []string{"xmlns", "viewBox", "width", "height", "role", "class", "x", "y", "rx", "d", "text-anchor",
		"id", "patternUnits", "patternTransform", "fill"}
)

// checkSVG reads the whole picture: it must be well formed, hold nothing but shapes and texts, and lie inside its frame.
func checkSVG(t rapid.TB, picture string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("expected well-formed XML, found %v", err)
		}
		if element, ok := token.(xml.StartElement); ok {
			checkElement(t, element)
		}
	}
	if n := strings.Count(picture, "://"); n != 1 {
		t.Fatalf("expected one address, the name of SVG, found %d", n)
	}
}

func checkElement(t rapid.TB, element xml.StartElement) {
	t.Helper()
	if !slices.Contains(knownElements, element.Name.Local) {
		t.Fatalf("expected no element %s", element.Name.Local)
	}
	for _, attribute := range element.Attr {
		name, value := attribute.Name.Local, attribute.Value
		if !slices.Contains(knownAttributes, name) {
			t.Fatalf("expected no attribute %s", name)
		}
		if n, err := strconv.ParseFloat(value, 64); slices.Contains([]string{"x", "y", "width", "height"}, name) && (err != nil || n < -1 || n > 20000) {
			t.Fatalf("expected a place in the picture, found %s=%q", name, value)
		}
	}
}

func checkTable(t rapid.TB, table string) {
	t.Helper()
	for _, r := range table {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			t.Fatalf("expected no control character, found %U", r)
		}
	}
}

func busy(attempts int) Chart {
	s := eventsFrom("2026-03-02T00:00:00Z")
	for range attempts {
		s.start(time.Hour).after(time.Minute).fail(Failure, 4*time.Minute, strings.Repeat("long ", 50), "HTTP 503")
	}
	return Chart{Title: "busy", Events: s.events}
}

func TestALongRunStaysReadable(t *testing.T) {
	chart := busy(1000)
	picture := render(t, SVG, []Chart{chart, chart})
	checkSVG(t, picture)
	failIf(t, !strings.Contains(picture, "rows are left out"), "expected the picture to say how many rows are left out")
	rows := len(windowsOf(read(chart), schemes[1]))
	failIf(t, rows != maxWindows, "got %d rows, want %d", rows, maxWindows)
}

func TestAnAttemptOfASecondInADayCanBeSeen(t *testing.T) {
	chart := Chart{Events: eventsFrom("2026-03-02T00:00:00Z").start(time.Minute).after(time.Second).succeed(time.Time{}).
		after(23 * time.Hour).start(time.Minute).after(time.Second).succeed(time.Time{}).events}
	bars := regexp.MustCompile(`class="success" x="\S+" y="\S+" width="(\S+)"`).FindAllStringSubmatch(render(t, SVG, []Chart{chart}), 2)
	for _, bar := range bars {
		width, _ := strconv.ParseFloat(bar[1], 64)
		failIf(t, width < float64(stairMin), "got a bar of %v pixels, want at least %v", width, stairMin)
	}
	failIf(t, len(bars) != 2, "got %d bars, want 2", len(bars))
}

func TestAttemptsInOneRowDoNotCoverEachOther(t *testing.T) {
	for _, charts := range [][]Chart{charts(t)["month"], {busy(200)}} {
		free := map[string]float64{} // for each row
		boxes := regexp.MustCompile(`class="(?:success|failure|timeout)" x="(\S+)" y="(\S+)" width="(\S+)"`)
		shades := regexp.MustCompile(`class="deadline" x="(\S+)" y="(\S+)" width="(\S+)"`)
		for _, shape := range []*regexp.Regexp{boxes, shades} {
			clear(free)
			for _, box := range shape.FindAllStringSubmatch(render(t, SVG, charts), -1) {
				x, _ := strconv.ParseFloat(box[1], 64)
				width, _ := strconv.ParseFloat(box[3], 64)
				if x < free[box[2]]-0.2 { // coordinates are rounded
					t.Errorf("%s: expected it behind %v", box[0], free[box[2]])
				}
				free[box[2]] = x + width
			}
		}
	}
}

func TestTicksAreRoundTimesOfTheWallClock(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	tests := []struct{ from, to, want string }{
		{"2026-03-02T08:00:00+01:00", "2026-03-02T08:00:07+01:00", "08:00:00 08:00:01 08:00:02 08:00:03 08:00:04 08:00:05 08:00:06 08:00:07"},
		{"2026-03-02T08:03:00+01:00", "2026-03-02T10:03:00+01:00", "08:15 08:30 08:45 09:00 09:15 09:30 09:45 10:00"},
		{"2026-03-28T20:00:00+01:00", "2026-03-29T20:00:00+02:00", "21:00 Sun 29 Mar 03:00 06:00 09:00 12:00 15:00 18:00"},
		{"2026-03-02T08:00:00+01:00", "2026-03-10T08:00:00+01:00", "3 Mar 4 Mar 5 Mar 6 Mar 7 Mar 8 Mar 9 Mar 10 Mar"},
	}
	for _, test := range tests {
		var labels []string
		for _, tick := range (axis{period: period{instant(test.from), instant(test.to)}, zone: berlin}).ticks() {
			labels = append(labels, tick.Text)
		}
		got := strings.Join(labels, " ")
		failIf(t, got != test.want, "%s to %s: got %s, want %s", test.from, test.to, got, test.want)
	}
}

func TestAWriterThatFailsIsReported(t *testing.T) {
	reader, writer := io.Pipe()
	_ = reader.CloseWithError(io.ErrShortWrite)
	for name, render := range renderers {
		err := render(writer, busy(1))
		failIf(t, !errors.Is(err, io.ErrShortWrite), "%s: got %v, want the error of the writer", name, err)
	}
}
