package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/admin/adopt"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
	"github.com/refreshd/refreshd/worker"
)

// adopting are the settings of an import of other systems' schedules.
type adopting struct {
	out     string // directory; empty: standard output
	options adopt.Options
}

func adoptCommand(a *app) *cobra.Command {
	var own adopting
	from := func(kind, of, text, payload string) *cobra.Command {
		return &cobra.Command{
			Use: kind + " FILE|-", Short: "Write " + of + " as models", Args: oneFile,
			Long: "Write what " + text + ", as models. The payload has " + payload + ", for a worker of yours. See refreshd import --help.",
			RunE: func(_ *cobra.Command, args []string) error { return a.adopt(&own, args[0], adopt.Readers[kind]) },
		}
	}
	crontab := from("crontab", "the lines of a crontab", "", "")
	crontab.Short += ", with the command in the payload"
	crontab.Long = `Read a crontab as cron of Debian and cronie do, and write a model for each line. Its uid comes from the command, its schedule stays as it is written,
and the payload has the command as cron hands it to the shell, for refreshd worker --shell. A wait for a random time at the beginning becomes the spread
of the policy, and timeout 20m before it a timeout of 21m. The list also names lines whose times differ from those of cron(8) when clocks are changed, and
commands that go on in the background or depend on where they start. See refreshd import --help.`
	crontab.Example = `  crontab -l | refreshd import crontab - --timeout 1h --out models
  refreshd import crontab /etc/crontab --timeout 2h --timezone Europe/Berlin`
	crontab.Flags().BoolVar(&own.options.System, "system", false, "each line has a user before its command, as in /etc/crontab and /etc/cron.d, where it is found out")
	command := group("import", "Write the schedules of another system as models", crontab,
		from("systemd", "timers of systemd", "systemctl cat NAME.timer NAME.service prints", "the command of the service"),
		from("k8s", "the CronJobs of Kubernetes", "kubectl get cronjobs -o yaml prints", "the spec of the Job as job"),
		from("celery-beat", "the tasks of django-celery-beat", "manage.py dumpdata django_celery_beat prints", "task, args, kwargs and queue"),
		from("sidekiq-cron", "the schedule of sidekiq-cron", "stands in its schedule file", "the job without its times"),
		from("bullmq", "the job schedulers of BullMQ", "getJobSchedulers or getRepeatableJobs returns, in JSON", "name and data"))
	command.Long = `Write the schedules of another system as models and a policy, for refreshd apply. Nothing is saved, and Redis is not asked. What refreshd model export
has written is saved by refreshd model import.

The zone of a schedule that names none is --timezone, or else the one of this machine. Each model needs a timeout, which most systems have not: without
--timeout nothing is written, and the lines that need one are listed. Nothing is retried, and a model goes on at its next time, unless a command exits
with 64, 65, 77 or 78, which disables it. What cron missed it never makes up for, so the policies of a crontab have misfire: skip. Cron starts all that is due at
once; a worker, also that of refreshd up, takes four attempts at a time, or --concurrency.

With --out the models stand in models.yaml and the policies in policies.yaml of a new or empty directory, for refreshd apply -f DIR. Without it they are
printed, and the list goes to stderr. The list says of each line what is not carried over as it is:
  refused   the line is wrong; the others are written
  left_out  nothing here corresponds to it
  differs   a model is written that does not do quite the same
  carried   it is carried over in another form
What it tells you to write belongs into models.yaml or policies.yaml, by hand.

Exit codes: 0 all is carried over; 1 failed, or a line was refused; 2 wrong usage; 3 something is left out or differs.`
	for _, kind := range command.Commands() {
		flags := kind.Flags()
		flags.Var((*duration)(&own.options.Timeout), "timeout", "how long an attempt may take, of all schedules that name no timeout")
		flags.StringVar(&own.options.Timezone, "timezone", "", "`ZONE` of schedules that name none (default that of this machine)")
		flags.StringVar(&own.out, "out", "", "write into `DIR`, which is new or empty")
	}
	return command
}

func isSystemCrontab(path string) bool {
	whole, err := filepath.Abs(path)
	return err == nil && (whole == "/etc/crontab" || filepath.Dir(whole) == "/etc/cron.d")
}

// adopt reads a file, and writes what becomes of its schedules.
func (a *app) adopt(own *adopting, from string, read func(string, adopt.Options) (*adopt.Adopted, error)) (err error) {
	own.options.Now = time.Now()
	if own.options.Timezone == "" {
		if own.options.Timezone, err = machineZone("/"); err != nil {
			return usageError{err}
		}
	}
	if _, err := schedule.Zone(own.options.Timezone); err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	name, in, err := a.openInput(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	own.options.Users = usersOf("/")
	own.options.System = own.options.System || isSystemCrontab(from)
	adopted, err := read(strings.TrimPrefix(string(text), "\ufeff"), own.options)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	list := a.stderr
	if own.out != "" {
		list = a.stdout
	}
	counts := make(map[adopt.Kind]int)
	for _, note := range adopted.Notes {
		counts[note.Kind]++
		if a.json() {
			err = print.JSONLine(list, note)
		} else {
			_, err = fmt.Fprintln(list, plain(fmt.Sprintf("%-8s  %s line %d: %s%s", note.Kind, name, note.Line, mark(note.UID != "", note.UID+": "), note.Text)))
		}
		if err != nil {
			return err
		}
	}
	need := 0
	for _, m := range adopted.Models {
		if m.Policy.Timeout == 0 {
			a.report(fmt.Sprintf("%s line %d: %s needs a timeout", name, m.Line, m.UID))
			need++
		}
	}
	if need > 0 {
		return usagef("--timeout: expected how long an attempt may take, such as 1h, for %s, found nothing: nothing is written", words.Count(need, "model", "models"))
	}
	if len(adopted.Models) > 0 {
		if err := own.write(a.stdout, adopted); err != nil {
			return err
		}
	}
	a.report(fmt.Sprintf("%s: %s in %s; %d refused, %d left out, %d differ%s", name, words.Count(len(adopted.Models), "model", "models"),
		cmp.Or(zonesOf(adopted), own.options.Timezone), counts[adopt.Refused], counts[adopt.LeftOut], counts[adopt.Differs], slots(adopted)))
	switch {
	case counts[adopt.Refused] > 0:
		return errReported
	case counts[adopt.LeftOut]+counts[adopt.Differs] > 0:
		return errDiffers
	case len(adopted.Models) == 0:
		return fmt.Errorf("%s: expected at least one schedule, found none", name)
	}
	return nil
}

// zonesOf are the zones that the models have, the first ones by name.
func zonesOf(adopted *adopt.Adopted) string {
	var zones []string
	for _, m := range adopted.Models {
		if !slices.Contains(zones, m.Timezone) {
			zones = append(zones, m.Timezone)
		}
	}
	if more := len(zones) - 3; more > 0 {
		zones = append(zones[:3], words.Count(more, "other zone", "other zones"))
	}
	return words.List(zones)
}

// slots says how many attempts at a time a worker has to take where commands start together, as cron starts all at once.
func slots(adopted *adopt.Adopted) string {
	most, usual := adopted.Busiest(), worker.Config{}.WithDefaults().Concurrency
	if most <= usual {
		return ""
	}
	return fmt.Sprintf("; up to %d start in the same minute, and a worker takes %d at a time: give it --concurrency %d, and one more for each that runs long", most, usual, most)
}

// usersOf are the users of the machine, by etc/passwd below root; none is known where it cannot be read.
func usersOf(root string) (names []string) {
	text, _ := os.ReadFile(filepath.Join(root, "etc/passwd"))
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// write prints the documents, or writes them into the directory, where it overwrites nothing.
func (own *adopting) write(stdout io.Writer, adopted *adopt.Adopted) error {
	if own.out == "" {
		return errors.Join(adopted.WritePolicies(stdout), adopted.WriteModels(stdout))
	}
	if err := os.MkdirAll(own.out, 0o755); err != nil {
		return err
	}
	if found, err := os.ReadDir(own.out); err != nil || len(found) > 0 {
		return errors.Join(err, fmt.Errorf("--out: expected a new or empty directory, found %s in %s", words.Count(len(found), "file", "files"), own.out))
	}
	for name, write := range map[string]func(io.Writer) error{"policies.yaml": adopted.WritePolicies, "models.yaml": adopted.WriteModels} {
		file, err := os.OpenFile(filepath.Join(own.out, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		if err := errors.Join(write(file), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// machineZone returns the zone of the machine as cron has it: of the link etc/localtime below root, or else of etc/timezone.
func machineZone(root string) (string, error) {
	link, _ := os.Readlink(filepath.Join(root, "etc/localtime"))   // there is none on some machines
	written, _ := os.ReadFile(filepath.Join(root, "etc/timezone")) // likewise
	_, linked, _ := strings.Cut(link, "zoneinfo/")
	other := strings.TrimSpace(string(written))
	name := cmp.Or(linked, other)
	if _, err := schedule.Zone(name); err != nil || name == "" || other != "" && name != other {
		return "", document.Refuse("--timezone", "the name of a zone such as Europe/Berlin, as /etc/localtime and /etc/timezone do not name the same one",
			document.Found(linked)+" and "+document.Found(other))
	}
	return name, nil
}
