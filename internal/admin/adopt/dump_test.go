package adopt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// summary is a line for each model and each note.
func summary(a *Adopted) string {
	var out strings.Builder
	for _, m := range a.Models {
		fmt.Fprintf(&out, "%d %s %q %s %s %v %s\n", m.Line, m.UID, m.Rule, m.Timezone, m.PolicyName, m.Labels, m.Payload)
	}
	for _, n := range a.Notes {
		text, _, _ := strings.Cut(n.Text, ", found")
		fmt.Fprintf(&out, "%s %d %s %.60s\n", n.Kind, n.Line, n.UID, text)
	}
	return out.String()
}

func TestTheSchedulesOfOtherSystemsBecomeModels(t *testing.T) {
	for name, test := range map[string]struct {
		read       func(string, Options) (*Adopted, error)
		text, want string
	}{
		"CronJobs in documents": {k8s.adopt, `apiVersion: batch/v1
kind: CronJob
metadata: {name: feeds, namespace: shop}
spec:
  schedule: "*/15 6-18 * * 1-5"
  timeZone: Asia/Tokyo
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      activeDeadlineSeconds: 600
      backoffLimit: 0
      template: {spec: {containers: [{image: "feeds:1", args: [--all]}]}}
---
kind: CronJob
metadata: {name: off}
spec: {schedule: "0 6 * * *", suspend: true}
---
kind: Service
metadata: {name: web}
---
`, `1 shop.feeds "*/15 6-18 * * 1-5" Asia/Tokyo k8s-10m map[namespace:shop] {"job":{"activeDeadlineSeconds":600,"backoffLimit":0,"template":{"spec":{"containers":[{"args":["--all"],"image":"feeds:1"}]}}}}
left_out 14  off: it is suspended
left_out 18  web: expected a CronJob
`},
		"a List of CronJobs in JSON": {k8s.adopt, `{"kind": "List", "items": [
  {"kind": "CronJob", "metadata": {"name": "a"}, "spec": {"schedule": "@every 90m", "startingDeadlineSeconds": 60, "jobTemplate": {"spec": {"template": {}}}}},
  {"kind": "CronJob", "metadata": {"name": "b"}, "spec": {"schedule": "0 25 * * *", "timeZone": "UTC"}}
]}`, `2 a "@every 90m" Europe/Berlin k8s-1h map[] {"job":{"template":{}}}
differs 2 a Kubernetes retries a failed pod: write retries into the poli
differs 2 a its concurrencyPolicy is not Forbid, and no model runs twice
differs 2 a startingDeadlineSeconds: write misfire: run_if_younger_than 
differs 2 a it names no timeZone, which then is that of the kube-control
refused 3  b: expected numbers from 0 to 23, as 1, 1-5, */2 or 1,5, in 
`},
		"sidekiq-cron": {sidekiq.adopt, `sweep:
  cron: "30 2 * * *"
  class: SweepJob
  args: [1, "a"]
old: {cron: "@daily", class: OldJob, status: disabled}
zoned job: {cron: "0 5 * * * America/New_York", class: Z}
`, `1 sweep "30 2 * * *" Europe/Berlin sidekiq-cron-1h map[] {"args":[1,"a"],"class":"SweepJob"}
6 zoned-job-c864fc "0 5 * * *" America/New_York sidekiq-cron-1h map[] {"class":"Z"}
differs 1 sweep Sidekiq retries a job that fails as its class says: write re
differs 1 sweep it names no zone, which then is that of Rails, or else UTC: 
differs 1 sweep 2027-03-28: 02:30 does not exist on that day, runs at 03:30 
differs 1 sweep 2027-10-31: 02:30 occurs twice, runs at the first here; side
left_out 5  old: it is disabled
differs 6 zoned-job-c864fc Sidekiq retries a job that fails as its class says: write re
`},
		"sidekiq-cron as a list": {sidekiq.adopt, `[{"name": "sweep", "cron": "30 2 * * *", "class": "SweepJob"}, {"name": "old", "cron": "@daily", "status": "disabled"}]`,
			`1 sweep "30 2 * * *" Europe/Berlin sidekiq-cron-1h map[] {"class":"SweepJob","name":"sweep"}
left_out 1  old: it is disabled
differs 1 sweep Sidekiq retries a job that fails as its class says: write re
differs 1 sweep it names no zone, which then is that of Rails, or else UTC: 
differs 1 sweep 2027-03-28: 02:30 does not exist on that day, runs at 03:30 
differs 1 sweep 2027-10-31: 02:30 occurs twice, runs at the first here; side
`},
		"BullMQ": {bullmq.adopt, `[{"key":"daily","name":"report","next":1796101754958,"iterationCount":3,"pattern":"0 9 * * *","tz":"Asia/Tokyo","template":{"data":{"id":12345678901234567890},"opts":{"attempts":3,"priority":5,"removeOnFail":false}}},
{"key":"poll","name":"poll","every":90000,"tz":null,"offset":7},
{"key":"seconds","name":"s","pattern":"0 0 9 * * *"},
{"key":"until","name":"u","pattern":"0 9 * * *","endDate":1796101754958}]`, `1 daily "0 9 * * *" Asia/Tokyo bullmq-1h map[] {"data":{"id":12345678901234567890},"name":"report"}
2 poll "@every 1m30s" Europe/Berlin bullmq-1h map[] {"data":null,"name":"poll"}
3 seconds "0 9 * * *" Europe/Berlin bullmq-1h map[] {"data":null,"name":"s"}
differs 1 daily it is attempted up to 3 times: write retries into the policy
left_out 1 daily priority
differs 2 poll of a repeatable job the dump tells no data, options and limi
differs 2 poll its interval counts from the midnight before the save, not f
differs 3 seconds of a repeatable job the dump tells no data, options and limi
differs 3 seconds it names no tz, which then is that of its process: taken as 
left_out 4  until: endDate 1796101754958: write a rule with DTSTART, UNT
`},
		"timers of systemd": {Timers, `# /lib/systemd/system/feeds.timer
[Unit]
Description=Feeds
[Timer]
OnCalendar=Mon..Fri 06:00 Asia/Tokyo
OnCalendar=*:0/15
RandomizedDelaySec=1h 30min
Persistent=true
AccuracySec=1s

# /etc/systemd/system/feeds.timer.d/override.conf
[Timer]
OnBootSec=5min

# /lib/systemd/system/feeds.service
[Service]
Type=oneshot
User=www-data
TimeoutStartSec=600
ExecStart=/usr/bin/feeds \
  --all
ExecStart=-/usr/bin/feeds clean %n

# /lib/systemd/system/odd.timer
[Timer]
OnCalendar=now and then
OnCalendar=
OnCalendar=sometimes

# /lib/systemd/system/odd.service
[Service]
ExecStart=
ExecStart=/bin/odd
TimeoutStartSec=infinity

# /lib/systemd/system/lonely.timer
[Timer]
OnCalendar=daily
`, `6 feeds "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0" Asia/Tokyo systemd-10m-spread-1h30m map[] {"command":"/usr/bin/feeds    --all && /usr/bin/feeds clean %n"}
6 feeds@da9b50 "FREQ=HOURLY;BYMINUTE=0,15,30,45;BYSECOND=0" Europe/Berlin systemd-10m-spread-1h30m map[] {"command":"/usr/bin/feeds    --all && /usr/bin/feeds clean %n"}
differs 6 feeds set it where the worker starts: User
differs 6 feeds ExecStart: to sh letters such as $ and * mean something else
differs 6 feeds each OnCalendar is a model of its own: two of them may run a
differs 6 feeds@da9b50 set it where the worker starts: User
differs 6 feeds@da9b50 ExecStart: to sh letters such as $ and * mean something else
differs 6 feeds@da9b50 each OnCalendar is a model of its own: two of them may run a
left_out 9  feeds.timer: AccuracySec is not carried over
left_out 13  feeds.timer: OnBootSec counts from a start: write a rule suc
refused 28  odd.timer: OnCalendar: expected a calendar or a time span th
left_out 36  lonely.timer: expected its service with an ExecStart in the 
`},
		"celery beat": {celery.adopt, `[{"model":"django_celery_beat.periodictask","pk":1,"fields":{"name":"Import feeds","task":"shop.import","interval":null,"crontab":7,"args":"[\"acme\"]","kwargs":"{\"id\": 12345678901234567890}","queue":null,"enabled":true,"one_off":false,"expire_seconds":60,"exchange":"","headers":"{}","priority":null,"total_run_count":7}},
{"model":"django_celery_beat.periodictask","pk":2,"fields":{"name":"ping","task":"ping","interval":7,"crontab":null,"args":"[]","kwargs":"{}","enabled":true}},
{"model":"django_celery_beat.periodictask","pk":3,"fields":{"name":"off","task":"off","interval":7,"enabled":false}},
{"model":"django_celery_beat.periodictask","pk":4,"fields":{"name":"sun","task":"sun","solar":1,"enabled":true}},
{"model":"django_celery_beat.crontabschedule","pk":7,"fields":{"minute":"0","hour":"6, 16","day_of_week":"mon","day_of_month":"1-7","month_of_year":"*","timezone":"Asia/Tokyo"}},
{"model":"django_celery_beat.intervalschedule","pk":7,"fields":{"every":10,"period":"minutes"}},
{"model":"django_celery_beat.periodictasks","pk":1,"fields":{"last_update":"2026-01-01T00:00:00Z"}}]`,
			`1 Import-feeds-28931f "FREQ=MONTHLY;BYMONTHDAY=1,2,3,4,5,6,7;BYDAY=MO;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0" Asia/Tokyo celery-beat-1h map[] {"args":["acme"],"kwargs":{"id":12345678901234567890},"queue":null,"task":"shop.import"}
2 ping "every 10 minutes" Europe/Berlin celery-beat-1h map[] {"args":[],"kwargs":{},"queue":null,"task":"ping"}
left_out 1 Import-feeds-28931f expire_seconds
differs 2 ping its interval counts from the midnight before the save, not f
left_out 3  off: it is disabled
left_out 4  sun: the sun has no rule
`},
	} {
		t.Run(name, func(t *testing.T) {
			a := check.Got(test.read(test.text, usual))(t)
			check.Equal(t, test.want, summary(a))
		})
	}
}

func TestATimerIsReadAsSystemdReadsIt(t *testing.T) {
	const differs = "3 differs"
	for name, c := range map[string]struct {
		timer, service  string
		timeout, spread time.Duration
		list            string
	}{
		"oneshot":                {"Persistent=true", "Type=oneshot\nTimeoutStartSec=5minutes\nRuntimeMaxSec=1\nExecStart=/bin/a", 5 * time.Minute, 0, ""},
		"simple":                 {"Persistent=On\nRandomizedDelaySec=1 hour 30 seconds", "TimeoutStartSec=9\nRuntimeMaxSec=2hours\nExecStart=/bin/a", 2 * time.Hour, time.Hour + 30*time.Second, ""},
		"timeout(1)":             {"Persistent=yes", "ExecStart=/usr/bin/timeout 20m /bin/a", 21 * time.Minute, 0, "3 carried"},
		"timeout(1) and a limit": {"Persistent=yes", "RuntimeMaxSec=10m\nExecStart=/usr/bin/timeout 20m /bin/a", 10 * time.Minute, 0, ""},
		"no limit":               {"Persistent=1", "RuntimeMaxSec=infinity\nExecStart=/bin/a", time.Hour, 0, ""},
		"not persistent":         {"Persistent=off", "ExecStart=/bin/a", time.Hour, 0, differs},
		"months":                 {"Persistent=yes", "RuntimeMaxSec=1month\nExecStart=/bin/a", time.Hour, 0, differs},
		"sh reads a $":           {"Persistent=yes", "ExecStart=/bin/a $HOME", time.Hour, 0, differs},
		"sh reads a glob":        {"Persistent=yes", "ExecStart=/bin/a *.csv", time.Hour, 0, differs},
		"sh reads a ;":           {"Persistent=yes", "ExecStart=/bin/a ; /bin/b", time.Hour, 0, differs},
		"sh reads a quote":       {"Persistent=yes", "ExecStart=/bin/a \"b c\"", time.Hour, 0, ""},
		"sh reads a \\":          {"Persistent=yes", `ExecStart=/bin/a \x20`, time.Hour, 0, differs},
		"sh reads a #":           {"Persistent=yes", "ExecStart=/bin/a #b", time.Hour, 0, differs},
		"sh reads a redirection": {"Persistent=yes", "ExecStart=/bin/a >b", time.Hour, 0, differs},
	} {
		a := check.Got(Timers("# /a/a.timer\n[Timer]\nOnCalendar=daily\n"+c.timer+"\n# /a/a.service\n[Service]\n"+c.service, usual))(t)
		if p := a.Models[0].Policy; p.Timeout != c.timeout || p.Spread != c.spread || listOf(a) != c.list {
			t.Errorf("%s: expected %+v, found %s, %s and %v", name, c, p.Timeout, p.Spread, a.Notes)
		}
	}
	for _, text := range []string{"", "[Timer]\nOnCalendar=daily\n", "[Timer]\n# /a/a.timer\n[Timer]\nOnCalendar=daily\n"} {
		a, err := Timers(text, usual)
		check.FailIf(t, err == nil || !strings.Contains(err.Error(), "systemctl cat"), "%q: expected an error that says what to do, found %+v", text, a)
	}
}

func TestATextThatIsNoDumpIsRefused(t *testing.T) {
	for _, read := range []func(string, Options) (*Adopted, error){k8s.adopt, sidekiq.adopt, bullmq.adopt, celery.adopt} {
		for _, text := range []string{"[", "- 1", "a: *b", "[[1]]"} {
			a, err := read(text, usual)
			check.FailIf(t, err == nil && (len(a.Models) > 0 || len(a.Notes) == 0), "%q: expected an error, found %+v", text, a)
		}
	}
}
