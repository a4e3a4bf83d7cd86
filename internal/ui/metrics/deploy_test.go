package metrics_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

const deploy = "../../../deploy/"

func promtool(t *testing.T, args ...string) {
	t.Helper()
	testkit.RequireProgram(t, "promtool", "prometheus")
	command := exec.Command("promtool", args...)
	command.Dir = deploy + "prometheus"
	output, err := command.CombinedOutput()
	failIf(t, err != nil, "promtool %s: %v\n%s", strings.Join(args, " "), err, output)
}

func TestPromtoolAcceptsTheAlertsAndTheConfiguration(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "alerts.yaml")
	promtool(t, "check", "config", "prometheus.yml")
}

func TestAnOutageOfOneHostIsOneAlertAndEachSymptomHasItsOwn(t *testing.T) {
	long.Only(t)
	t.Parallel()
	promtool(t, "test", "rules", "alerts_test.yaml")
}

type alert struct {
	Alert       string
	Expr        string
	Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	must(t, yaml.Unmarshal(read(t, deploy+"prometheus/alerts.yaml"), &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text := check.Got(os.ReadFile(file))(t)
	return text
}

func TestEachAlertHasItsSectionInOperations(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(string(read(t, "../../../docs/operations.md")), "\n## Alerts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var want, runbooks, headings []string
	for _, rule := range alerts(t) {
		want, runbooks = append(want, rule.Alert), append(runbooks, rule.Annotations["runbook"])
	}
	for _, found := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(section, -1) {
		headings = append(headings, found[1])
	}
	equal(t, want, headings)
	for i, name := range want {
		anchor := "docs/operations.md#" + strings.ToLower(name)
		failIf(t, runbooks[i] != anchor, "%s: expected the runbook %s, found %s", name, anchor, runbooks[i])
	}
}

// expressions are all of the dashboards and alerts, by where they stand. The variables of Grafana have values.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob(deploy + "grafana/dashboards/*.json")
	stopIf(t, err != nil || len(files) == 0, "expected dashboards, found %v, %v", files, err)
	values := strings.NewReplacer("$__rate_interval", "1m", "$queue", "bigtables")
	for _, file := range files {
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
			Templating struct {
				List []struct{ Query struct{ Query string } }
			}
		}
		err := json.Unmarshal(read(t, file), &board)
		stopIf(t, err != nil, "%s: %v", file, err)
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				all[filepath.Base(file)+": "+panel.Title+" "+target.RefID] = values.Replace(target.Expr)
			}
		}
		for _, variable := range board.Templating.List {
			metric, _, _ := strings.Cut(strings.TrimPrefix(variable.Query.Query, "label_values("), ",")
			all[filepath.Base(file)+": its variable"] = metric
		}
	}
	for _, rule := range alerts(t) {
		all[rule.Alert] = rule.Expr
	}
	return all
}

func TestPromtoolAcceptsEachExpressionOfTheDashboards(t *testing.T) {
	t.Parallel()
	type record struct{ Record, Expr string }
	var rules []record
	all := expressions(t)
	for i, where := range slices.Sorted(maps.Keys(all)) {
		rules = append(rules, record{fmt.Sprintf("x:%d", i), all[where]})
	}
	text := check.Got(yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": rules}}}))(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	must(t, os.WriteFile(file, text, 0o600))
	promtool(t, "check", "rules", "--lint=none", file)
}

var (
	// selected is a metric of ours in an expression, with its matchers.
	selected = regexp.MustCompile(`(refreshd_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)=(~?)"([^"]*)"`)
	part     = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestTheNumbersOfAStoryAreThoseOfAlertsDashboardsAndThePage compares each name, and each value of a label, that they ask for with a real exposition, and
// the table of docs/metrics.md with what is told; REFRESHD_GOLDEN=1 writes it anew.
func TestTheNumbersOfAStoryAreThoseOfAlertsDashboardsAndThePage(t *testing.T) {
	t.Parallel()
	s := newStory(t, testkit.Miniredis(t))
	s.tell()
	s.serve()
	families := s.scrape()
	for where, expression := range expressions(t) {
		for _, found := range selected.FindAllStringSubmatch(expression, -1) {
			family := families[found[1]]
			if family == nil {
				family = families[part.ReplaceAllString(found[1], "")]
			}
			if family == nil {
				t.Errorf("%s: nobody tells %s", where, found[1])
				continue
			}
			for _, match := range matcher.FindAllStringSubmatch(found[2], -1) {
				expectLabel(t, where, family, match[1], match[3])
			}
		}
	}
	const page = "../../../docs/metrics.md"
	const begin, end = "<!-- generated: metrics -->\n", "<!-- end -->"
	before, rest, _ := strings.Cut(string(read(t, page)), begin)
	_, after, found := strings.Cut(rest, end)
	stopIf(t, !found, "%s: expected a table between %q and %q", page, begin, end)
	golden(t, page, before+begin+table(families)+end+after)

	reply := httptest.NewRecorder()
	s.Handler().ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	problems := check.Got(promlint.New(reply.Body).Lint())(t)
	for _, problem := range problems { // the conventions of Prometheus
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// expectLabel checks that a metric has a label with each of some values.
func expectLabel(t *testing.T, where string, family *dto.MetricFamily, name, values string) {
	t.Helper()
	for value := range strings.SplitSeq(values, "|") {
		if !slices.ContainsFunc(family.Metric, func(m *dto.Metric) bool {
			return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == name && l.GetValue() == value })
		}) {
			t.Errorf("%s: %s has no %s=%q", where, family.GetName(), name, value)
		}
	}
}

func table(families map[string]*dto.MetricFamily) string {
	text := "| metric | labels | meaning |\n|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(families)) {
		family := families[name]
		if !strings.HasPrefix(name, "refreshd_") {
			continue
		}
		labels := map[string]bool{}
		for _, m := range family.Metric {
			for _, label := range m.Label {
				labels["`"+label.GetName()+"`"] = true
			}
		}
		text += fmt.Sprintf("| `%s` | %s | %s |\n", name, strings.Join(slices.Sorted(maps.Keys(labels)), " "), family.GetHelp())
	}
	return text
}
