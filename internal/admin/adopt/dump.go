package adopt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// dump says how a scheduler writes its schedules. Paths are such as spec.schedule.
type dump struct {
	source, zoneless string            // zoneless is what has the zone of a schedule that names none
	name, cron, zone string            // paths
	named            bool              // each is a field of the document
	both             bool              // days must fit both of their fields
	payload          map[string]string // paths by field; nil: all but the times
	rows             []row
	more             func(all []record, r *record, j *job) // what no path says
}

// row says what a value means that is not one of those in plain, which are separated by |. LeftOut: there is no model.
type row struct {
	path, plain string
	kind        Kind
	text        string // with %s for the value
}

const (
	countsAnew = "its interval counts from the midnight before the save, not from its "
	bounded    = ": write a rule with DTSTART, UNTIL or COUNT"
)

// Readers read what other systems print, by their names. The payload of a model has what a worker needs.
var Readers = map[string]func(text string, o Options) (*Adopted, error){
	"crontab": Crontab, "systemd": Timers, "k8s": k8s.adopt, "celery-beat": celery.adopt, "sidekiq-cron": sidekiq.adopt, "bullmq": bullmq.adopt,
}

// k8s is what kubectl get cronjobs -o yaml prints of batch/v1.
var k8s = dump{
	source: "k8s", zoneless: "timeZone, which then is that of the kube-controller-manager",
	name: "metadata.name", cron: "spec.schedule", zone: "spec.timeZone", payload: map[string]string{"job": "spec.jobTemplate.spec"},
	rows: []row{
		{"kind", "CronJob", LeftOut, "expected a CronJob, found %s"},
		{"spec.suspend", "|false", LeftOut, "it is suspended"},
		{"spec.jobTemplate.spec.backoffLimit", "0", Differs, "Kubernetes retries a failed pod: write retries into the policy, such as {strategy: exponential, base: 10s, cap: 6m, count: 6}"},
		{"spec.concurrencyPolicy", "Forbid", Differs, "its concurrencyPolicy is not Forbid, and no model runs twice at a time"},
		{"spec.startingDeadlineSeconds", "", Differs, "startingDeadlineSeconds: write misfire: run_if_younger_than %ss into the policy"},
		{"metadata.labels", "", Differs, "its labels are not carried over"},
		{"spec.jobTemplate.metadata.labels", "", Differs, "the labels of its Jobs are not carried over"},
		{"spec.jobTemplate.metadata.annotations", "", Differs, "the annotations of its Jobs are not carried over"},
	},
	more: func(_ []record, r *record, j *job) {
		if namespace := r.text("metadata.namespace"); namespace != "" {
			j.labels, j.name = map[string]any{"namespace": namespace}, namespace+"."+j.name
		}
		j.timeout, _ = document.ParseDuration(r.text("spec.jobTemplate.spec.activeDeadlineSeconds")) // Kubernetes takes a number alone
	},
}

// sidekiq is a schedule of sidekiq-cron: an object with a field for each job, or a list of jobs with their names.
var sidekiq = dump{
	source: "sidekiq-cron", named: true, zoneless: "zone, which then is that of Rails, or else UTC", name: "name", cron: "cron",
	rows: []row{
		{"status", "|enabled", LeftOut, "it is %s"},
		{"every", "", LeftOut, "every %s: sidekiq-cron reads cron alone, and sidekiq-scheduler counts from a start: write a rule such as every 15 minutes"},
		{"class", "", Differs, "Sidekiq retries a job that fails as its class says: write retries into the policy"},
	},
}

// bullmq is in JSON what getJobSchedulers of BullMQ returns, or getRepeatableJobs.
var bullmq = dump{
	source: "bullmq", zoneless: "tz, which then is that of its process", name: "key", cron: "pattern", zone: "tz", payload: map[string]string{"name": "name", "data": "template.data"},
	rows: []row{
		{"startDate", "", LeftOut, "startDate %s" + bounded},
		{"endDate", "", LeftOut, "endDate %s" + bounded},
		{"limit", "", LeftOut, "limit %s" + bounded},
		{"template.opts.attempts", "|0|1", Differs, "it is attempted up to %s times: write retries into the policy"},
	},
	more: func(_ []record, r *record, j *job) {
		j.leaveOut(r, "template.opts", "attempts")
		if r.text("iterationCount")+r.text("template") == "" { // getJobSchedulers of BullMQ 5 lists them, too
			j.note(Differs, "of a repeatable job the dump tells no data, options and limit: add them")
		}
		if oldDays.MatchString(j.cron) {
			j.note(Differs, "its days are as BullMQ 6 reads them: up to BullMQ 5 a #, or all days of a month or week, beside other days means less")
		}
		// BullMQ 3 and 4 write an interval as the pattern.
		if every, err := strconv.Atoi(cmp.Or(r.text("every"), r.text("pattern"))); err == nil {
			j.rule = "@every " + document.FormatDuration(time.Duration(every)*time.Millisecond)
			j.note(Differs, countsAnew+"offset")
		}
	},
}

var oldDays = regexp.MustCompile(`\s1-31\s+\S+\s+[^*\s]\S*$|\s(?:\*/\S+|[^*\s]\S*)\s+\S+\s+(?:[01]-7|\S*#\S*)$`)

// celery is what manage.py dumpdata django_celery_beat prints.
var celery = dump{
	source: "celery-beat", zoneless: "timezone, which then is CELERY_TIMEZONE", name: "fields.name", both: true, payload: map[string]string{"task": "fields.task", "queue": "fields.queue"},
	rows: []row{
		{"model", "django_celery_beat.periodictask", LeftOut, ""}, // a part of others
		{"fields.enabled", "|true", LeftOut, "it is disabled"},
		{"fields.one_off", "|false", LeftOut, "it runs once"},
		{"fields.start_time", "", LeftOut, "start_time %s" + bounded},
		{"fields.expires", "", LeftOut, "expires %s" + bounded},
		{"fields.solar", "", LeftOut, "the sun has no rule"},
	},
	more: func(all []record, r *record, j *job) {
		for i := range all {
			switch kind, ours := all[i].text("model"), func(field string) bool { return all[i].text("pk") == r.text("fields."+field) }; {
			case kind == "django_celery_beat.intervalschedule" && ours("interval"):
				j.rule = "every " + all[i].text("fields.every") + " " + all[i].text("fields.period")
				j.note(Differs, countsAnew+"last run")
			case kind == "django_celery_beat.crontabschedule" && ours("crontab"):
				for _, name := range []string{"minute", "hour", "day_of_month", "month_of_year", "day_of_week"} {
					j.cron += strings.ReplaceAll(all[i].text("fields."+name), " ", "") + " "
				}
				j.zone = all[i].text("fields.timezone")
			}
		}
		j.leaveOut(r, "fields", celeryFields...)
		for _, name := range []string{"args", "kwargs"} {
			var value any
			if decodeJSON(r.text("fields."+name), &value) != nil {
				value = r.text("fields." + name)
			}
			j.payload[name] = value
		}
	},
}

// celeryFields are carried over, or say nothing about what is to come.
var celeryFields = []string{
	"name", "task", "interval", "crontab", "args", "kwargs", "queue", "enabled", "description", "last_run_at", "total_run_count", "date_changed",
}

// adopt reads all records. Each one is a job, or a note says why it is none.
func (d *dump) adopt(text string, o Options) (*Adopted, error) {
	all, err := records(text, d.named)
	if err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	a := &Adopted{source: d.source, options: o}
	for i := range all {
		r := &all[i]
		j := &job{line: r.line, name: cmp.Or(r.name, r.text(d.name)), cron: r.text(d.cron), zone: r.text(d.zone)}
		j.title = document.Shorten(cmp.Or(j.name, r.text("kind")), maxName) + ": "
		if why, is := d.read(all, r, j); !is {
			if why != "" {
				a.note(j.line, LeftOut, "%s%s", j.title, why)
			}
			continue
		}
		if j.zone == "" && j.cron != "" && d.zoneless != "" {
			j.note(Differs, "it names no %s: taken as %s", d.zoneless, o.Timezone)
		}
		j.zone, j.same, j.name = cmp.Or(j.zone, o.Timezone), j.name, cmp.Or(slug(j.name, `[^\w.:-]+`), "job")
		a.jobs = append(a.jobs, j)
	}
	return a.complete(), nil
}

// read fills in a job from its record. is is false if it has no model.
func (d *dump) read(all []record, r *record, j *job) (why string, is bool) {
	for _, row := range d.rows {
		value := r.text(row.path)
		if slices.Contains(strings.Split(row.plain, "|"), value) {
			continue
		}
		text := strings.Replace(row.text, "%s", document.Shorten(value, maxName), 1)
		if row.kind == LeftOut {
			return text, false
		}
		j.note(row.kind, "%s", text)
	}
	j.payload = maps.Clone(r.fields)
	if delete(j.payload, d.cron); d.payload != nil {
		clear(j.payload)
	}
	for field, path := range d.payload {
		j.payload[field] = r.at(path)
	}
	if d.more != nil {
		d.more(all, r, j)
	}
	if j.rule != "" {
		j.cron = ""
		return "", true
	}
	rule, zone, ok := schedule.FromCron(j.cron, d.both)
	if j.rule, j.zone = rule, cmp.Or(j.zone, zone); !ok {
		j.rule = j.cron
		if _, err := schedule.Read(j.cron); j.cron == "" || err == nil && j.cron[0] != '@' { // English, which it may read otherwise
			if d.cron == "" {
				return "expected its interval or crontab in the same text, as manage.py dumpdata django_celery_beat prints all", false
			}
			return d.cron + ": expected the fields of a cron expression, found " + document.Found(j.cron), false
		}
	}
	return "", true
}

// leaveOut notes the fields below a path that say something, but for the known ones.
func (j *job) leaveOut(r *record, path string, known ...string) {
	fields, _ := r.at(path).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) && !slices.Contains([]string{"<nil>", "", "{}", "map[]", "false"}, fmt.Sprint(fields[name])) {
			j.note(LeftOut, "%s", document.Shorten(name, maxName))
		}
	}
}

// record is one object of the text of another scheduler, in YAML or JSON.
type record struct {
	line   int
	name   string // of the field in which it stands; empty: in a list
	fields map[string]any
}

// at returns the value at a path; nil: there is none.
func (r *record) at(path string) (value any) {
	value = r.fields
	for name := range strings.SplitSeq(path, ".") {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// text is at as a text; empty: there is none.
func (r *record) text(path string) string {
	if value := r.at(path); value != nil {
		return fmt.Sprint(value)
	}
	return ""
}

// records are the documents of a text, the elements of lists, also of those called items, or, if named, the fields of documents.
func records(text string, named bool) (all []record, err error) {
	for decoder := yaml.NewDecoder(strings.NewReader(text)); err == nil; {
		var node yaml.Node
		if err = decoder.Decode(&node); err == nil {
			all, err = objects(all, node.Content[0], "", named)
		}
	}
	if errors.Is(err, io.EOF) {
		return all, nil
	}
	if strings.Contains(text, "{{") || strings.Contains(text, "<%") {
		err = fmt.Errorf("%w; is it a template? Render it first", err)
	}
	return nil, err
}

func objects(all []record, node *yaml.Node, name string, named bool) (_ []record, err error) {
	inner := node.Content
	if node.Kind == yaml.SequenceNode {
		for i := 0; i < len(inner) && err == nil; i++ {
			all, err = objects(all, inner[i], "", false)
		}
		return all, err
	}
	whole := true
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(inner) && err == nil; i += 2 {
		if named || inner[i].Value == "items" {
			inner[i+1].Line, whole = inner[i].Line, false
			all, err = objects(all, inner[i+1], inner[i].Value, false)
		}
	}
	var value any
	if err = cmp.Or(err, node.Decode(&value)); !whole || err != nil || value == nil { // nil: an empty document
		return all, err
	}
	r := record{line: node.Line, name: name}
	text, err := json.Marshal(value) // so that the payload has what JSON would have
	if err = cmp.Or(err, decodeJSON(string(text), &r.fields)); err != nil {
		err = fmt.Errorf("line %d: expected an object as in JSON, found %s", r.line, document.Found(string(text)))
	}
	return append(all, r), err
}

// decodeJSON keeps all digits of numbers.
func decodeJSON(text string, value any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(value)
}
