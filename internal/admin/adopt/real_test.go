package adopt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestFilesInTheShapeOfRealOnesBecomeTheModelsAndTheListThatWereReviewed(t *testing.T) {
	for kind, read := range map[string]func(string, Options) (*Adopted, error){
		"k8s": k8s.adopt, "sidekiq-cron": sidekiq.adopt, "bullmq": bullmq.adopt, "celery-beat": celery.adopt, "systemd": Timers,
	} {
		files := check.Got(filepath.Glob("testdata/dumps/*." + kind))(t)
		check.StopIf(t, len(files) == 0, "expected files of %s, found none", kind)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				got := rendered(t, check.Got(read(string(check.Got(os.ReadFile(file))(t)), usual))(t))
				golden := strings.TrimSuffix(file, "."+kind) + ".golden"
				if *update {
					check.Must(t, os.WriteFile(golden, []byte(got), 0o644))
				}
				check.Equal(t, string(check.Got(os.ReadFile(golden))(t)), got)
			})
		}
	}
}

func TestATemplateIsToBeRenderedFirst(t *testing.T) {
	for text, read := range map[string]func(string, Options) (*Adopted, error){
		"kind: CronJob\nspec: {schedule: {{ .Values.schedule | quote }}}\n":            k8s.adopt,
		"<% if production? %>\nfeeds:\n  cron: \"0 6 * * *\"\n  class: A\n<% end %>\n": sidekiq.adopt,
	} {
		_, err := read(text, usual)
		check.FailIf(t, err == nil || !strings.Contains(err.Error(), "Render it first"), "%q: expected an error that says what to do, found %v", text, err)
	}
}
