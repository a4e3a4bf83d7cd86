package people

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// prometheusServer is a real Prometheus with the alerts that are shipped.
type prometheusServer struct{ address string }

var forDuration = regexp.MustCompile(`(?m)^(\s+for:) \S+$`)

// startPrometheus starts one that asks each daemon for its metrics every second. How long a symptom must last is shortened to seconds.
func startPrometheus(t *testing.T, daemons ...string) *prometheusServer {
	t.Helper()
	dir := t.TempDir()
	alerts := check.Got(os.ReadFile("../../deploy/prometheus/alerts.yaml"))(t)
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yaml]\nscrape_configs:\n- job_name: refreshd\n  static_configs: [{targets: [\"" +
		strings.Join(daemons, `", "`) + "\"]}]\n"
	for name, text := range map[string]string{"alerts.yaml": forDuration.ReplaceAllString(string(alerts), "$1 2s"), "prometheus.yml": config} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p := &prometheusServer{testkit.FreeAddress(t)}
	testkit.Start(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.address, "--log.level=warn")
	check.Eventually(t, "Prometheus is ready", func() bool {
		response, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

// names are the alerts that an expression of PromQL finds, each once.
func (p *prometheusServer) names(t *testing.T, expression string) []string {
	t.Helper()
	response, err := http.Get(fmt.Sprintf("http://%s/api/v1/query?query=%s", p.address, url.QueryEscape(expression)))
	must(t, err)
	defer response.Body.Close()
	var found struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
			} `json:"result"`
		} `json:"data"`
	}
	must(t, json.NewDecoder(response.Body).Decode(&found))
	names := []string{}
	for _, series := range found.Data.Result {
		names = append(names, series.Metric["alertname"])
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// await waits until exactly these alerts are firing.
func (p *prometheusServer) await(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	t.Cleanup(func() { t.Log("last firing:", got) })
	check.Eventually(t, fmt.Sprint("firing are ", want), func() bool {
		got = p.names(t, `ALERTS{alertstate="firing"}`)
		return slices.Equal(got, want) || len(got) == 0 && len(want) == 0
	})
}

// fired are all alerts that have fired since the server began.
func (p *prometheusServer) fired(t *testing.T) []string {
	t.Helper()
	return p.names(t, `max_over_time(ALERTS{alertstate="firing"}[1h])`)
}
