package adopt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// record is one object of the text of another scheduler, in YAML or JSON.
type record struct {
	line   int
	name   string // of the field in which it stands; empty: in a list
	fields map[string]any
}

// at returns the value at a path such as spec.schedule; nil: there is none.
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

// add adds the objects of a document: itself, the elements of a list, also of one called items, or, if named, its fields.
func add(all []record, node *yaml.Node, name *yaml.Node, named bool) ([]record, error) {
	var items []*yaml.Node
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if named || node.Content[i].Value == "items" {
			items = append(items, node.Content[i], node.Content[i+1])
		}
	}
	if node.Kind == yaml.SequenceNode || node.Kind == yaml.DocumentNode {
		for _, item := range node.Content {
			items = append(items, nil, item)
		}
	} else if len(items) == 0 {
		r := record{line: node.Line}
		if name != nil {
			r.line, r.name = name.Line, name.Value
		}
		var value any
		err := node.Decode(&value)
		text, failed := json.Marshal(value) // so that the payload has what JSON would have
		if err = cmp.Or(err, failed, decodeJSON(string(text), &r.fields)); value == nil {
			return all, nil // an empty document
		} else if err != nil {
			return nil, fmt.Errorf("line %d: expected an object as in JSON: %w", r.line, err)
		}
		return append(all, r), nil
	}
	for i := 0; i < len(items); i += 2 {
		var err error
		if all, err = add(all, items[i+1], items[i], named && node.Kind == yaml.DocumentNode); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// decodeJSON keeps all digits of numbers.
func decodeJSON(text string, value any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(value)
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

const countsAnew = "its interval counts from the midnight before the save, not from its "

// adoptDump reads all records. Each one is a job that read fills in, or a note says why it is none.
func adoptDump(source, text string, named bool, o Options, read func(all []record, r *record, j *job) (leftOut string)) (*Adopted, error) {
	var all []record
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			all, err = add(all, &node, nil, named)
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
	}
	var jobs []*job
	var notes []Note
	for i := range all {
		j := &job{line: all[i].line, name: all[i].name}
		switch leftOut := read(all, &all[i], j); {
		case leftOut == part:
		case leftOut != "":
			notes = append(notes, Note{Line: j.line, Kind: LeftOut, Text: document.Shorten(j.name, maxName) + ": " + leftOut})
		default:
			j.zone, j.same, j.name = cmp.Or(j.zone, o.Timezone), j.name, cmp.Or(slug(j.name, `[^\w.:-]+`), "job")
			jobs = append(jobs, j)
		}
	}
	return adopt(source, jobs, notes, o), nil
}

// part marks a record that is only a part of others.
const part = "part"

// CronJobs reads the CronJobs of Kubernetes, batch/v1, as kubectl get cronjobs -o yaml prints them. The payload has the spec of the Job.
func CronJobs(text string, o Options) (*Adopted, error) {
	return adoptDump("k8s", text, false, o, func(_ []record, r *record, j *job) string {
		j.name, j.rule, j.zone = r.text("metadata.name"), r.text("spec.schedule"), r.text("spec.timeZone")
		switch {
		case r.text("kind") != "CronJob":
			return "expected a CronJob, found " + document.Found(r.text("kind"))
		case r.text("spec.suspend") == "true":
			return "it is suspended"
		}
		if namespace := r.text("metadata.namespace"); namespace != "" {
			j.labels = map[string]any{"namespace": namespace}
			j.name = namespace + "." + j.name
		}
		j.payload = map[string]any{"job": r.at("spec.jobTemplate.spec")}
		seconds, _ := strconv.Atoi(r.text("spec.jobTemplate.spec.activeDeadlineSeconds"))
		j.timeout = time.Duration(seconds) * time.Second
		if j.zone == "" {
			j.note(Differs, "it names no timeZone, which then is that of the kube-controller-manager: taken as %s", o.Timezone)
		}
		if r.text("spec.jobTemplate.spec.backoffLimit") != "0" {
			j.note(Differs, "Kubernetes retries a failed pod: write retries into the policy, such as {strategy: exponential, base: 10s, cap: 6m, count: 6}")
		}
		if r.text("spec.concurrencyPolicy") != "Forbid" {
			j.note(Differs, "its concurrencyPolicy is not Forbid, and no model runs twice at a time")
		}
		if late := r.text("spec.startingDeadlineSeconds"); late != "" {
			j.note(Differs, "startingDeadlineSeconds: write misfire: run_if_younger_than %ss into the policy", late)
		}
		return ""
	})
}

// SidekiqCron reads the schedule of sidekiq-cron: an object with a field for each job, or a list of jobs with their names. The payload has the job without its times.
func SidekiqCron(text string, o Options) (*Adopted, error) {
	return adoptDump("sidekiq-cron", text, true, o, func(_ []record, r *record, j *job) string {
		j.name, j.rule, j.payload = cmp.Or(r.name, r.text("name")), r.text("cron"), maps.Clone(r.fields)
		if r.text("status") == "disabled" {
			return "it is disabled"
		}
		delete(j.payload, "cron")
		j.note(Differs, "Sidekiq retries a job that fails as its class says: write retries into the policy")
		return ""
	})
}

// BullMQ reads in JSON what getJobSchedulers of BullMQ returns. The payload has the name of the jobs, and their data.
func BullMQ(text string, o Options) (*Adopted, error) {
	return adoptDump("bullmq", text, false, o, func(_ []record, r *record, j *job) string {
		j.name, j.rule, j.zone = r.text("key"), r.text("pattern"), r.text("tz")
		if r.text("startDate")+r.text("endDate")+r.text("limit") != "" {
			return "it begins or ends: write a rule with DTSTART, UNTIL or COUNT"
		}
		if every, _ := strconv.Atoi(r.text("every")); every > 0 {
			j.rule = "@every " + (time.Duration(every) * time.Millisecond).String()
			j.note(Differs, countsAnew+"offset")
		}
		if attempts := r.text("template.opts.attempts"); attempts > "1" {
			j.note(Differs, "it is attempted up to %s times: write retries into the policy", attempts)
		}
		j.leaveOut(r, "template.opts", "attempts")
		j.payload = map[string]any{"name": r.at("name"), "data": r.at("template.data")}
		return ""
	})
}

// CeleryBeat reads what manage.py dumpdata django_celery_beat prints. The payload has task, args, kwargs and queue.
func CeleryBeat(text string, o Options) (*Adopted, error) {
	return adoptDump("celery-beat", text, false, o, func(all []record, r *record, j *job) string {
		if r.text("model") != "django_celery_beat.periodictask" {
			return part
		}
		j.name = r.text("fields.name")
		if r.text("fields.enabled") == "false" || r.text("fields.one_off") == "true" || r.text("fields.start_time")+r.text("fields.expires") != "" {
			return "it is disabled, runs once, begins or ends"
		}
		for i := range all {
			switch kind, ours := all[i].text("model"), func(field string) bool { return all[i].text("pk") == r.text("fields."+field) }; {
			case kind == "django_celery_beat.intervalschedule" && ours("interval"):
				j.rule = "every " + all[i].text("fields.every") + " " + all[i].text("fields.period")
				j.note(Differs, countsAnew+"last run")
			case kind == "django_celery_beat.crontabschedule" && ours("crontab"):
				j.rule, j.zone = celeryRule(&all[i]), all[i].text("fields.timezone")
			}
		}
		if j.rule == "" {
			return "expected an interval, or a crontab of days that we can name, found neither"
		}
		j.leaveOut(r, "fields", celeryFields...)
		j.payload = map[string]any{"task": r.at("fields.task"), "queue": r.at("fields.queue")}
		for _, name := range []string{"args", "kwargs"} {
			var value any
			if decodeJSON(r.text("fields."+name), &value) != nil {
				value = r.text("fields." + name)
			}
			j.payload[name] = value
		}
		return ""
	})
}

// celeryFields are carried over, or say nothing about what is to come.
var celeryFields = []string{
	"name", "task", "interval", "crontab", "args", "kwargs", "queue", "enabled", "description", "last_run_at", "total_run_count", "date_changed",
}

// celeryRule writes five fields, or, as celery wants days that fit both of their fields, a rule for these.
func celeryRule(r *record) string {
	var five []string
	for _, name := range []string{"minute", "hour", "day_of_month", "month_of_year", "day_of_week"} {
		five = append(five, strings.ReplaceAll(r.text("fields."+name), " ", ""))
	}
	rule := strings.Join(five, " ")
	read, err := schedule.Read(rule)
	if err != nil || five[2] == "*" || five[4] == "*" {
		return rule
	}
	return strings.Join(schedule.Alternatives(read.Rule), "")
}
