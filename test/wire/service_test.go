package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// services are the ones of docs/servers.md that forbid commands, played by the rules of a user.
var services = map[string]struct {
	forbids string
	lacks   string // what doctor names as an error
}{
	"nothing":                       {"", ""},
	"CONFIG":                        {"-config", ""},
	"SELECT":                        {"-select", ""},
	"CLIENT":                        {"-client", ""},
	"INFO":                          {"-info", ""},
	"SCRIPT FLUSH and functions":    {"-script|flush -script|kill -function -fcall -fcall_ro", ""},
	"EVAL, but not EVALSHA":         {"-eval -eval_ro -evalsha_ro", ""},
	"publish and subscribe":         {"-@pubsub resetchannels", ""},
	"commands that wait":            {"-@blocking", ""},
	"what only administrators need": {"-@admin", ""},
	"what is dangerous":             {"-@dangerous", ""},
	"transactions":                  {"-multi -exec -watch", "EXEC MULTI"},
	"SCAN":                          {"-scan", "SCAN"},
}

// TestDaemonsWorkOnAServiceThatForbidsCommandsAndDoctorNamesWhatItLacks saves a model, has it refreshed by a pool, and asks the doctor.
func TestDaemonsWorkOnAServiceThatForbidsCommandsAndDoctorNamesWhatItLacks(t *testing.T) {
	long.Only(t)
	for name, service := range services {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := setup(t, onService(t, service.forbids), nil)
			testkit.Refreshd(t, append([]string{"worker", "--exec", "true"}, o.flags()...)...)
			o.command(map[string]any{"type": "put", "uid": "tbl"})
			o.await("bigtables:model:tbl", "last_success_at", "*")
			o.doctorNames(service.lacks)
		})
	}
}

// TestDoctorNamesWhatNoDaemonCanDoWithout asks on services on which nothing can be refreshed.
func TestDoctorNamesWhatNoDaemonCanDoWithout(t *testing.T) {
	long.Only(t)
	for name, forbids := range map[string]string{"TIME": "-time", "XLEN": "-@stream"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			(&outside{t: t, place: onService(t, forbids)}).doctorNames(name)
		})
	}
}

// onService is a server on which a user may do everything but what the rules forbid.
func onService(t *testing.T, forbids string) place {
	t.Helper()
	p := place{server: testkit.Redis(t), user: "app:secret@"}
	words := []any{"ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"}
	for word := range strings.FieldsSeq(forbids) {
		words = append(words, word)
	}
	check.Must(t, p.server.Client(t).Do(t.Context(), words...).Err())
	return p
}

// doctorNames expects that the doctor fails exactly if commands are missing, and names the server in any case.
func (o *outside) doctorNames(commands string) {
	o.t.Helper()
	doctor := testkit.Refreshd(o.t, append([]string{"doctor", "-o", "json"}, o.flags()...)...)
	code := doctor.Wait()
	_, output, _ := strings.Cut(doctor.Output(), "{\n") // text for people is before the report and behind it
	output, _, _ = strings.Cut(output, "\n}")
	var report struct {
		Servers  []struct{ Name, Version string }
		Findings []struct{ Code, Where string }
	}
	check.Must(o.t, json.Unmarshal([]byte("{"+output+"}"), &report))
	var lacks []string
	for _, finding := range report.Findings {
		if finding.Code == "command" {
			lacks = append(lacks, finding.Where)
		}
	}
	slices.Sort(lacks)
	found := strings.Join(lacks, " ")
	failIf(o.t, found != commands || (code == 0) != (commands == ""), "expected %q to be named, found %q and exit code %d", commands, found, code)
	failIf(o.t, len(report.Servers) != 1 || report.Servers[0].Name == "" || report.Servers[0].Version == "", "expected a server with name and version, found %v", report.Servers)
}
