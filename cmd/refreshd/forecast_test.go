package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// hourlyFleet saves models that refresh each hour, half an hour from now, ten of each host. It returns in which minute of the hour.
func hourlyFleet(c *console, models int) (minute int) {
	c.t.Helper()
	minute = (time.Now().Minute() + 30) % 60
	var text strings.Builder
	for i := range models {
		fmt.Fprintf(&text, `{"uid":"m%03d","payload":{"input_url":"http://h%d/x"},"labels":{"tenant":"t%d"},"rrule":"FREQ=HOURLY;BYMINUTE=%d","dtstart":"2026-01-01"}`+"\n", i, i/10, i%2, minute)
	}
	c.put(text.String())
	return minute
}

// nowOf reads the clock of a queue.
func nowOf(q *fixture.Queue) time.Time {
	now, err := q.Store.Now(context.Background())
	if err != nil {
		panic(err)
	}
	return now
}

// recordOf reads a model as a daemon does.
func recordOf(q *fixture.Queue, uid string) *store.Record {
	records, err := q.Store.Load(context.Background(), []string{uid})
	if err != nil {
		panic(err)
	}
	return records[uid]
}

func TestAForecastTellsThePeakTheMinutesOverTheDrainAndWhatASpreadWouldDo(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		hourlyFleet(c, 200)
		c.do("model", "disable", "m000")

		f := c.object("forecast", "--for", "6h", "--drain", "60/m", "--by", "host")
		load, spread := f["load"].(map[string]any), f["with_spread"].(map[string]any)
		if f["models"] != 200.0 || f["disabled"] != 1.0 || load["peak"] != 199.0 || load["starts"] != 6*199.0 || load["minutes_over"] != 6.0 || load["backlog"] != 139.0 {
			t.Errorf("found %v of %v models, %v disabled", load, f["models"], f["disabled"])
		}
		peak := spread["peak"].(float64)
		failIf(t, peak < 30 || peak > 70 || spread["starts"].(float64) < 5*199, "with a spread of six minutes: %v", spread)
		groups := fmt.Sprint(f["groups_at_peak"])
		failIf(t, strings.Count(groups, "name") != 5 || !strings.Contains(groups, "map[name:host=h1 starts:10]"), "groups at the peak: %s", groups)
		minutes := 0.0
		for _, starts := range f["starts_per_minute"].([]any) {
			minutes += starts.(float64)
		}
		failIf(t, minutes != load["starts"], "%v starts by minute, %v in all", minutes, load["starts"])

		picked := c.object("forecast", "-l", "tenant=t1", "--for", "2h", "--spread", "30m")
		failIf(t, picked["models"] != 100.0 || picked["drain_per_minute"] != nil || picked["drain_source"] != "not known" || picked["spread_length"] != "30m",
			"of a tenant: %v", picked)
		expectContains(t, c.do("forecast", "--for", "6h", "--drain", "1/s", "--by", "label:tenant"), "60 a minute, as given", "peak 199 in the minute",
			"6 of 36", "139 at", "drained by", "with a spread of a tenth of each interval", "########", "WORST MINUTES", "AT THE PEAK, BY LABEL:TENANT", "tenant=t1  ")
		expectContains(t, c.do("forecast", "-l", "tenant=none"), "nothing starts")
	})
}

func TestALevelledFleetStartsEvenlyAndStaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		minute := hourlyFleet(c, 120)
		plan := c.object("level", "--within", "10m", "--plan", "--drain", "30/m")
		before, after := plan["before"].(map[string]any), plan["after"].(map[string]any)
		if plan["models"] != 120.0 || before["peak"] != 120.0 || after["peak"] != 12.0 || before["minutes_over"] != 24.0 || after["minutes_over"] != 0.0 || plan["changed"] != 0.0 {
			t.Errorf("the plan: %v", plan)
		}
		expectContains(t, c.do("level"), "120 may be moved", "peak    falls from 120 to 12 a minute\n", "before  peak 120", "after   peak 12", "--apply stores it")
		failIf(t, c.object("model", "get", "m001")["phase"] != "", "a plan has changed a model")

		done := c.object("level", "--apply", "--by", "ops")
		failIf(t, done["changed"] != plan["moves"] || done["left"] != 0.0, "applied: %v", done)
		again := c.object("level", "--apply")
		failIf(t, again["moves"] != 0.0 || again["changed"] != 0.0, "applied again: %v", again)
		load := c.object("forecast", "--for", "6h")["load"].(map[string]any)
		failIf(t, load["peak"].(float64) > 12, "the forecast then: %v", load)

		uid := ""
		for _, m := range c.objects(c.do("model", "ls", "-o", "json")) {
			if m["phase"] != "" {
				uid = fmt.Sprint(m["uid"])
			}
		}
		phase := c.object("model", "get", uid)["phase"]
		expectContains(t, c.do("explain", uid), "Levelling moved its refresh from ")
		expectContains(t, c.do("model", "get", uid), fmt.Sprintf("phase       %v\n", phase))
		if at := fmt.Sprint(c.object("model", "get", uid)["refresh_at"]); strings.HasSuffix(at, fmt.Sprintf(":%02d:00.000Z", minute)) {
			t.Errorf("%s starts at %s, with a phase of %v", uid, at, phase)
		}
		c.put(fmt.Sprintf(`{"uid":%q,"rrule":"FREQ=HOURLY;BYMINUTE=%d;BYSECOND=7","dtstart":"2026-01-01"}`, uid, minute))
		got := c.object("model", "get", uid)
		if got["phase"] != phase || got["refresh_at"] != got["planned_at"] || strings.HasSuffix(fmt.Sprint(got["planned_at"]), fmt.Sprintf(":%02d:07.000Z", minute)) {
			t.Errorf("after a save with another rule: phase %v of %v, starts at %v, planned at %v", got["phase"], phase, got["refresh_at"], got["planned_at"])
		}

		cleared := c.object("level", "--clear", "-l", "uid="+uid)
		got = c.object("model", "get", uid)
		failIf(t, cleared["changed"] != 1.0 || got["phase"] != "" || !strings.HasSuffix(fmt.Sprint(got["refresh_at"]), fmt.Sprintf(":%02d:07.000Z", minute)),
			"cleared: %v, %v", cleared, got["refresh_at"])
	})
}

func TestAModelThatRunsIsLeftAndLevelledLaterAndAQueueOfSeveralPartsAsOne(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		d := divide(t, server, 4)
		hourlyFleet(c, 20)
		load := c.object("forecast", "--for", "6h", "--drain", "1/s")["load"].(map[string]any)
		failIf(t, load["peak"] != 20.0 || load["starts"] != 120.0, "forecast: %v", load)
		expectContains(t, c.fail(exitFailed, "level", "--apply", "--queue", "{bigtables:1}"), "queue: expected the whole of {bigtables}")
		plan := c.object("level")
		eachModel := func(do func(q *fixture.Queue, record *store.Record, now time.Time)) {
			for i := range 20 {
				q, uid := fixture.Live(t, server), fmt.Sprintf("m%03d", i)
				q.Store = d.Of(uid)
				do(q, recordOf(q, uid), nowOf(q))
			}
		}
		eachModel(func(q *fixture.Queue, record *store.Record, now time.Time) {
			run, _ := record.Run(true, now)
			q.Commit(now, record.Decide(run, now), record.Decide(record.Start(now, "x"+record.UID), now))
		})
		done := c.object("level", "--apply")
		failIf(t, done["changed"] != 0.0 || done["left"] != plan["moves"], "while all run: %v", done)
		eachModel(func(q *fixture.Queue, record *store.Record, now time.Time) {
			q.Commit(now, record.Decide(record.Succeed(now, nil), now))
		})
		done = c.object("level", "--apply")
		failIf(t, done["changed"] != plan["moves"] || done["left"] != 0.0, "when they have ended: %v", done)
		journal := 0
		for _, part := range d.Parts {
			err := report.Of(part).EachEntry(t.Context(), time.UnixMilli(1), func(entry model.JournalEntry) error {
				if entry.Event == model.EventLevel && entry.By != "" {
					journal++
				}
				return nil
			})
			failIf(t, err != nil, "%v", err)
		}
		failIf(t, float64(journal) != plan["moves"], "%d entries in the journal, want %v", journal, plan["moves"])
	})
}

func TestAQueueOfSeveralPartsIsForecastAndLevelledAsOne(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.do("queue", "create", "--parts", "4")
		hourlyFleet(c, 120)
		load := c.object("forecast", "--for", "6h", "--drain", "1/s")["load"].(map[string]any)
		failIf(t, load["peak"] != 120.0 || load["starts"] != 720.0, "forecast: %v", load)
		done := c.object("level", "--apply")
		after := done["after"].(map[string]any)
		failIf(t, after["peak"] != 12.0 || done["changed"] != done["moves"] || done["left"] != 0.0, "levelled: %v", done)
		expectContains(t, c.fail(exitFailed, "level", "--apply", "--queue", "{bigtables:1}"), "queue: expected the whole of {bigtables}")
	})
}

func TestTheDrainIsWhatWorkersTookWhileOthersWaited(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		q := fixture.Live(t, server)
		c := at(t, server)
		c.in = `{"uid":"a"}` + "\n" + `{"uid":"b"}` + "\n"
		c.do("model", "put", "-")
		now := nowOf(q)
		for _, uid := range []string{"a", "b"} {
			record := recordOf(q, uid)
			q.Commit(now, record.Decide(record.Start(now, "x"+uid), now), record.Decide(record.Succeed(now, nil), now))
		}
		if f := c.object("forecast"); f["drain_per_minute"] != nil {
			t.Errorf("of workers that were never behind: got %v, want it not known", f["drain_per_minute"])
		}
		must(t, q.Redis.HSet(t.Context(), q.Store.Keys.Hours, now.Add(-5*time.Minute).UTC().Format("2006-01-02T15:04"), "start=90 taken=40").Err())
		f := c.object("forecast")
		if f["drain_per_minute"] != 40.0 || f["drain_source"] != "the most that workers took in a minute while attempts waited for them" {
			t.Errorf("got %v, %v", f["drain_per_minute"], f["drain_source"])
		}
		expectContains(t, c.do("forecast"), "40 a minute, the most that workers took in a minute while attempts waited for them")
	})
}

func TestALevelledPeakIsToldInASentence(t *testing.T) {
	for peaks, want := range map[[2]int]string{
		{1061, 109}: "falls from 1,061 to 109 a minute", {1_000_000, 1000}: "falls from 1,000,000 to 1,000 a minute", {7, 7}: "stays at 7 a minute",
	} {
		if got := peakText(peaks[0], peaks[1]); got != want {
			t.Errorf("%v: expected %q, found %q", peaks, want, got)
		}
	}
}
