package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/faces/health"
	"github.com/refreshd/refreshd/model/document"
)

func healthCommand(a *app) *cobra.Command {
	var address string
	var timeout time.Duration
	command := &cobra.Command{
		Use: "health [URL]", Short: "Ask a daemon whether it is well, for images without a shell", Args: cobra.MaximumNArgs(1),
		Long: `Ask a daemon whether it is well, and say why not. URL is that of /livez (would a restart help?) or /readyz (does it do its work?), such
as http://127.0.0.1:8080/livez. 127.0.0.1:8080 or :8080 alone means /readyz there. What URL leaves out, as /livez or no URL does, is the
address of --health, by which the daemon was told where to answer: REFRESHD_HEALTH serves both.

Exit codes: 0 it is well, 1 it is not or does not answer, 2 wrong usage.`,
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && strings.HasPrefix(args[0], "/"):
				address += args[0]
			case len(args) > 0:
				address = args[0]
			}
			return a.askHealth(command.Context(), address, timeout)
		},
	}
	command.Flags().StringVar(&address, "health", "", "the `ADDRESS` at which the daemon answers")
	timeout = 3 * time.Second
	command.Flags().Var((*duration)(&timeout), "health-timeout", "how long to wait for the answer")
	return command
}

// askHealth prints what a daemon says of itself. An error is why it is not well.
func (a *app) askHealth(ctx context.Context, address string, timeout time.Duration) error {
	target, err := healthURL(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	report, err := readHealth(ctx, target)
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	if err := a.print(report, [][2]any{{"status", report.Status}}); err != nil {
		return err
	}
	if report.Status != "ok" {
		return fmt.Errorf("%s: %s", target, cmp.Or(report.Why, "it does not say why"))
	}
	return nil
}

// healthURL completes what leaves out scheme, host or path.
func healthURL(address string) (string, error) {
	text := address
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	target, err := url.Parse(text)
	if err != nil || address == "" || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		return "", usagef("health: expected a URL such as http://127.0.0.1:8080/livez, or 127.0.0.1:8080, found %s", document.Found(address))
	}
	if host, port, err := net.SplitHostPort(target.Host); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		target.Host = net.JoinHostPort("127.0.0.1", port) // it listens everywhere
	}
	target.Path = cmp.Or(strings.TrimSuffix(target.Path, "/"), "/readyz")
	return target.String(), nil
}

// mostHealth bounds the answer that is read, in bytes: hundreds of loops.
const mostHealth = 1 << 20

// readHealth asks without a proxy and follows nobody elsewhere: the daemon is near.
func readHealth(ctx context.Context, target string) (report health.Report, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return report, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	reply, err := transport.RoundTrip(request)
	if err != nil {
		return report, err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(reply.Body, mostHealth))
	if err != nil {
		return report, err
	}
	well, is := map[int]bool{http.StatusOK: true, http.StatusServiceUnavailable: false}[reply.StatusCode]
	if !is || json.Unmarshal(text, &report) != nil || well != (report.Status == "ok") {
		return report, fmt.Errorf("%s: expected the report of a daemon, found %s and %s", target, reply.Status, document.Found(string(text)))
	}
	return report, nil
}
