package dashboard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

var (
	journalItem = regexp.MustCompile(`(?s)<li><span class="soft">.*?</span> (.*?)</li>`)
	tag         = regexp.MustCompile(`<[^>]*>`)
)

// rows are the sentences of a page of the journal, without their times.
func (d *visitor) rows(path string) (rows []string) {
	d.t.Helper()
	for _, match := range journalItem.FindAllStringSubmatch(d.page(path), -1) {
		rows = append(rows, tag.ReplaceAllString(match[1], ""))
	}
	return rows
}

func TestTheJournalTellsInSentencesWhoDidWhat(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, func(c *Config) { c.By = "ann" })
		d.put(failingModel)
		d.start()
		d.answer("failure", "a", `"reason":"503"`)
		d.press(home+"model/disable", "uid", "a", "reason", "source is <gone>")
		d.press(home+"circuit/open", "key", "host=x", "reason", "their proxy")
		d.Command(`{"type":"enable","uid":"a","by":"bob"}`)
		d.apply()
		equal(t, []string{"bob enabled a", "ann opened the circuit of host=x: their proxy", "ann disabled a: source is &lt;gone&gt;"}, d.rows(home+"journal"))
		equal(t, []string{"bob enabled a"}, d.rows(home+"journal?by=BOB"))
		all := d.rows(home + "journal?kind=all&uid=a")
		slices.Reverse(all)
		equal(t, []string{"somebody created a", "a started", "a failed: 503", "ann disabled a: source is &lt;gone&gt;", "bob enabled a"}, all)
		failIf(t, len(d.rows(home+"journal?uid=b")) != 0, "expected nothing of a model that is not there")
		status, page := d.status(home + "journal?before=x")
		failIf(t, status != 400, "expected 400, found %d", status)
		expect(t, page, "expected a position")
	})
}

func TestTheJournalTellsOfABulkInOneSentence(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) { c.By = "ann" })
	fillTenants(d, "m", 40)
	d.submit("models/all?l=tenant%3Dt1&do=disable", "models/all", "number", "20", "reason", "gone")
	for range 3 {
		must(t, check.Only(d.poller.RunOnce(t.Context())))
	}
	rows := d.rows(home + "journal")
	failIf(t, len(rows) != 1 || !regexp.MustCompile(`^ann disabled 20 models: m\d\d, m\d\d, m\d\d and 17 more: gone$`).MatchString(rows[0]), "expected one sentence, found %q", rows)
}

func TestTheJournalOfSeveralPartsIsPagedThroughNewestFirstEachOnce(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		q := fixture.New(t, server)
		clients := &redis.Clients{Read: q.Redis, Write: q.Redis, Block: q.Redis}
		must(t, store.Create(t.Context(), clients, store.Config{Queue: "{bigtables}"}, 3))
		d := sitAt(t, q, "{bigtables}", q.Redis, nil)
		const base, many = "/q/%7Bbigtables%7D/", 130
		var models strings.Builder
		for n := range many {
			fmt.Fprintf(&models, "{uid: m%03d, rrule: every day at 6 AM}\n---\n", n)
		}
		put(t, d.dashboard.sites.list[0].queue, models.String())
		tick := func() int64 { return q.Redis.Time(t.Context()).Val().UnixMilli() }
		for n := range many {
			d.Clock.Turn(2 * time.Minute) // so that none is told with another
			for at := tick(); server.Mini == nil && tick() == at; {
				continue // entries of two parts in one millisecond of Redis have no order
			}
			d.press(base+"model/disable", "uid", fmt.Sprintf("m%03d", n), "reason", "gone")
		}
		var got, want []string
		for path := base + "journal"; path != ""; {
			rows := d.rows(path)
			failIf(t, len(rows) > maxRows, "expected at most %d on a page, found %d", maxRows, len(rows))
			got = append(got, rows...)
			_, path = d.readList(path)
		}
		for n := range many {
			want = append(want, fmt.Sprintf("dashboard disabled m%03d: gone", many-1-n))
		}
		equal(t, want, got)
	})
}

func TestAJournalOfWhatNobodyAskedForIsReadWithinBounds(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	pipe := d.Redis.Pipeline()
	for n := range maxEntries + 100 {
		fields := []any{"uid", "a", "event", "start", "at", "2026-11-21T07:00:00.000Z"}
		if n < 10 {
			fields = append(fields, "by", "ann")
			fields[3] = "run"
		}
		pipe.Do(t.Context(), append([]any{"XADD", d.Store.Keys.Journal, fmt.Sprintf("%d-1", 1795244400000+n)}, fields...)...)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	page := d.page(home + "journal")
	expect(t, page, "Nothing among the entries looked at so far.", "The page looked at 10,000 entries")
	_, next := d.readList(home + "journal")
	failIf(t, len(d.rows(next)) != 10, "expected the ten of the next page, found %q", d.rows(next))
}

func TestAllModelsOfASearchAreRunAndTheJournalShowsItWhileItIsOpen(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{By: "ann"})
	f.fail("tbl_2", oneFeed, `"reason":"HTTP 503"`)
	tab := browser.Open(t)
	tab.Go(f.url("models"))
	tab.Fill("l", "503")
	tab.Press("Show")
	tab.AwaitText("Shown: 2 models failing with")
	tab.Follow("run")
	tab.Fill("number", "2")
	tab.Press("run 2 models")
	tab.AwaitText("the bulk run-")
	check.Eventually(t, "two runs", func() bool { // at the rate that the page proposes
		f.Clock.Turn(100 * time.Millisecond)
		return f.Stats()["run"] == 2
	})
	tab.Follow("Journal")
	tab.AwaitText("ann ran 2 models: ")
	f.Command(`{"type":"disable","uid":"tbl_1","by":"bob","reason":"has not paid"}`)
	tab.AwaitText("bob disabled tbl_1: has not paid")
}
