package scenarios

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/admin/adopt"
	"github.com/refreshd/refreshd/internal/admin/apply"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/refreshdtest"
	"github.com/refreshd/refreshd/worker"
)

// cronJob is a line of a crontab as the manual of cron(8) describes it. It shares no code with our schedules.
type cronJob struct {
	allowed     [5]map[int]bool // minute, hour, day of month, month, day of week
	anyDay      bool            // one of the days is a *: both must fit; else one of them is enough
	free, hours bool            // minute or hour begins with a *: the clock decides; hours: the hour alone, without a step
}

func readCronJob(rule string) (j cronJob) {
	if short := map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}[rule]; short != "" {
		rule = short
	}
	fields := strings.Fields(strings.ToLower(rule))
	for i, field := range fields {
		j.allowed[i] = readCronField(field, [][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}[i])
	}
	if j.allowed[4][7] {
		j.allowed[4][0] = true
	}
	j.anyDay = fields[2][0] == '*' || fields[4][0] == '*'
	j.free, j.hours = fields[0][0] == '*' || fields[1][0] == '*', fields[1] == "*"
	return j
}

func readCronField(field string, all [2]int) map[int]bool {
	names := map[string]int{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
	number := func(text string) int {
		if n, is := names[text]; is {
			return n
		}
		n, _ := strconv.Atoi(text)
		return n
	}
	allowed := make(map[int]bool)
	for item := range strings.SplitSeq(field, ",") {
		span, step, _ := strings.Cut(item, "/")
		low, high, isRange := strings.Cut(span, "-")
		from, to := number(low), number(low)
		if span == "*" {
			from, to = all[0], all[1]
		} else if isRange {
			to = number(high)
		}
		for n := from; n <= to; n += max(1, number(step)) {
			allowed[n] = true
		}
	}
	return allowed
}

// at reports whether the job is for a minute of the wall clock, which is given as if it were UTC.
func (j *cronJob) at(wall time.Time) bool {
	day, weekday := j.allowed[2][wall.Day()], j.allowed[4][int(wall.Weekday())]
	days := day && weekday
	if !j.anyDay {
		days = day || weekday
	}
	return days && j.allowed[0][wall.Minute()] && j.allowed[1][wall.Hour()] && j.allowed[3][int(wall.Month())]
}

// starts walks the minutes of an interval with the clock of a zone. As the manual of cron(8) says, jobs with a * follow the clock; other ones run
// once in two equal hours, and those of a skipped hour when it is over. With ours the documented differences apply: only an hour that is * makes a job
// follow the clock, and one of a skipped hour runs as late behind it as it would have been in it.
func (j *cronJob) starts(zone *time.Location, from, to time.Time, ours bool) (starts []time.Time) {
	free := j.free
	if ours {
		free = j.hours
	}
	wallOf := func(at time.Time) time.Time {
		_, offset := at.In(zone).Zone()
		return at.UTC().Add(time.Duration(offset) * time.Second)
	}
	seen := wallOf(from.Add(-time.Minute)) // the latest minute of the wall clock so far
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		now := wallOf(at)
		for skipped := seen.Add(time.Minute); !free && skipped.Before(now); skipped = skipped.Add(time.Minute) {
			if late := at; j.at(skipped) {
				if ours {
					late = at.Add(skipped.Sub(seen) - time.Minute)
				}
				starts = append(starts, late)
			}
		}
		if j.at(now) && (free || now.After(seen)) {
			starts = append(starts, at)
		}
		if now.After(seen) {
			seen = now
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	if ours { // no model starts twice at one time
		starts = slices.CompactFunc(starts, time.Time.Equal)
	}
	return starts
}

// crontabDays are a usual day that begins a month and is a Friday, one with a skipped hour, and one with two equal hours.
var crontabDays = map[string]string{"usual": "2026-05-01", "skipped hour": "2026-03-29", "two equal hours": "2026-10-25"}

func TestTwentyImportedCrontabsStartWhatCronStarts(t *testing.T) {
	files := check.Got(filepath.Glob("../../internal/admin/adopt/testdata/*.crontab"))(t)
	stopIf(t, len(files) < 20, "expected twenty crontabs, found %d", len(files))
	for name, day := range crontabDays {
		for _, file := range files {
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
				berlin := check.Got(schedule.Zone("Europe/Berlin"))(t)
				from := check.Got(time.ParseInLocation(time.DateOnly, day, berlin))(t)
				adopted := check.Got(adopt.Crontab(string(check.Got(os.ReadFile(file))(t)), adopt.Options{
					Timezone: "Europe/Berlin", Timeout: time.Hour, System: strings.Contains(file, ".system."), Now: from.AddDate(0, -1, 0),
				}))(t)
				to := from.AddDate(0, 0, 1)
				if isBusy(adopted) {
					to = from.Add(long.Or(4*time.Hour, to.Sub(from))) // they would take most of the time
				}
				compareWithCron(t, adopted, from, to, startsOf(t, adopted, from, to))
			})
		}
	}
}

// startsOf applies what was imported, as a directory, shortly before the interval, and lets the daemons run on a virtual clock. Each attempt succeeds.
func startsOf(t *testing.T, adopted *adopt.Adopted, from, to time.Time) map[string][]time.Time {
	dir := t.TempDir()
	for name, write := range map[string]func(*os.File) error{
		"policies.yaml": func(f *os.File) error { return adopted.WritePolicies(f) }, "models.yaml": func(f *os.File) error { return adopted.WriteModels(f) },
	} {
		file := check.Got(os.Create(filepath.Join(dir, name)))(t)
		must(t, write(file))
		must(t, file.Close())
	}
	directory := check.Got(definitions.ReadDirectory(dir))(t)
	starts := make(map[string][]time.Time)
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		q.Handle(func(_ context.Context, attempt *worker.Attempt) error {
			starts[attempt.UID] = append(starts[attempt.UID], time.Now())
			return nil
		})
		q.AdvanceTo(from.Add(-time.Minute))
		queue := check.Got(store.Open(t.Context(), &redis.Clients{Read: q.Redis, Write: q.Redis, Block: q.Redis}, store.Config{}))(t)
		plan := check.Got(apply.New(t.Context(), queue, directory, apply.Options{Owner: "cron", MaxDelete: "0"}))(t)
		must(t, plan.CarryOut(t.Context()))
		failIf(t, len(plan.Refused) > 0 || plan.Summary(true).Models.Failed > 0, "expected all to be applied, found %+v", plan.Refused)
		q.Advance(time.Minute - time.Millisecond) // shortly before the first minute: nothing may have started
		failIf(t, len(starts) > 0, "expected no start before %s, found %v", from, starts)
		q.AdvanceTo(to.Add(-time.Millisecond))
	})
	return starts
}

// isBusy reports whether a model starts many times a day.
func isBusy(adopted *adopt.Adopted) bool {
	return slices.ContainsFunc(adopted.Models, func(m adopt.Model) bool { return strings.HasPrefix(m.Rule, "*") })
}

// compareWithCron expects the same starts, but for lines of which the import has said that they differ.
func compareWithCron(t *testing.T, adopted *adopt.Adopted, from, to time.Time, started map[string][]time.Time) {
	t.Helper()
	for _, m := range adopted.Models {
		zone, job := check.Got(schedule.Zone(m.Timezone))(t), readCronJob(m.Rule)
		cron, want, got := job.starts(zone, from, to, false), job.starts(zone, from, to, true), started[m.UID]
		if !slices.EqualFunc(cron, want, time.Time.Equal) && !toldToDiffer(adopted, &m, from) {
			t.Errorf("%s (%s): cron starts %v, the documented differences make it %v, and the import has not said so", m.UID, m.Rule, cron, want)
		}
		spread := spreadOf(&m.Model)
		if len(got) != len(want) {
			t.Errorf("%s (%s): expected %d starts, found %d: %v", m.UID, m.Rule, len(want), len(got), got)
			continue
		}
		for i, at := range got {
			if late := at.Sub(want[i]); late < 0 || late > spread {
				t.Errorf("%s (%s): expected start %d at %s or up to %s later, found %s", m.UID, m.Rule, i+1, want[i].In(zone), spread, at.In(zone))
			}
		}
	}
}

func spreadOf(m *model.Model) time.Duration {
	_, text, _ := strings.Cut(m.PolicyName, "-spread-")
	spread, _ := time.ParseDuration(text)
	return spread
}

// toldToDiffer reports whether the import has named the model and the day of a change of clocks.
func toldToDiffer(adopted *adopt.Adopted, m *adopt.Model, day time.Time) bool {
	return slices.ContainsFunc(adopted.Notes, func(n adopt.Note) bool {
		return n.UID == m.UID && n.Kind == adopt.Differs && strings.HasPrefix(n.Text, day.Format(time.DateOnly))
	})
}

// The starts were observed: cron 3.0pl1-162 of Debian ran these lines under libfaketime, from 01:40 in Berlin on, twenty times as fast.
func TestTheReadingOfTheManualStartsWhatCronOfDebianHasStarted(t *testing.T) {
	berlin := check.Got(schedule.Zone("Europe/Berlin"))(t)
	skipped, twice := time.Date(2026, 3, 29, 0, 40, 0, 0, time.UTC), time.Date(2026, 10, 24, 23, 40, 0, 0, time.UTC)
	for rule, want := range map[string][2]string{
		"30 2 * * *":   {"03:00+02", "02:30+02"},
		"0,30 2 * * *": {"03:00+02 03:00+02", "02:00+02 02:30+02"},
		"*/30 2 * * *": {"", "02:00+02 02:30+02 02:00+01 02:30+01"},
		"0 */2 * * *":  {"", "02:00+02 02:00+01"},
		"15 * * * *":   {"03:15+02", "02:15+02 02:15+01"},
		"0 1-5 * * *":  {"03:00+02 03:00+02", "02:00+02"},
		"@hourly":      {"03:00+02", "02:00+02 02:00+01"},
		"30 3 * * *":   {"03:30+02", ""},
	} {
		job := readCronJob(rule)
		for i, from := range []time.Time{skipped, twice} {
			var got []string
			for _, at := range job.starts(berlin, from, from.Add([]time.Duration{55, 115}[i]*time.Minute), false) {
				got = append(got, at.In(berlin).Format("15:04-07"))
			}
			check.Equal(t, want[i], strings.Join(got, " "))
		}
	}
}
