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

	"github.com/refreshd/refreshd/internal/admin/doctor"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/health"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
	"github.com/refreshd/refreshd/model/zones"
)

func doctorCommand(a *app) *cobra.Command {
	options, strict := doctor.Options{Now: time.Now}, false
	command := a.onStored("doctor", "Check the queue and its Redis, and mend what is safe", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			report, err := doctor.Check(ctx, o.Queue, options)
			printed := a.printReport(doctorView{
				Queue: o.Queue.Name, ZoneData: zones.InUse().Origin, Layout: o.Queue.Layout, Complete: err == nil, Repaired: report.Repaired(),
				Errors: report.Total(doctor.Error), Warnings: report.Total(doctor.Warning), Report: report,
			}, options.Limit)
			if printed != nil || err != nil {
				return cmp.Or(printed, err)
			}
			return reported(report.Total(doctor.Error) > 0 || strict && report.Total(doctor.Warning) > 0)
		}, func() error {
			if options.Limit < 1 {
				return usagef("--limit: expected at least 1, found %d", options.Limit)
			}
			return nil
		})
	command.Long = `Check what must hold of every model, list and set of the queue, and the Redis that it lives in. It may run while everything
else runs: it reads in chunks, and looks again before it calls anything broken.

With --repair it mends what is safe: due and running set are written anew from the models, what is left of removed models goes,
attempts that are over leave the input list, lists that no process owns are handed to one. For the rest it prints what to do by hand.

It is an error when something waits and nobody serves it: models that are due or attempts past their deadline without a dispatcher,
messages without a poller, attempts in line of which no worker takes any.

Exit codes: 0 no error is left (and with --strict no warning either), 1 some are left or it could not look at everything, 2 wrong usage.`
	command.Flags().BoolVar(&options.Repair, "repair", false, "mend what is safe to mend")
	command.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	command.Flags().IntVar(&options.Limit, "limit", 20, "print at most `N` findings of one kind")
	return command
}

type doctorView struct {
	*doctor.Report

	Queue    string       `json:"queue"`
	Layout   int          `json:"layout"`    // of its keys
	ZoneData zones.Origin `json:"zone_data"` // of this program
	Complete bool         `json:"complete"`  // everything was looked at
	Errors   int          `json:"errors"`    // left
	Warnings int          `json:"warnings"`  // left
	Repaired int          `json:"mended"`
}

func (a *app) printReport(v doctorView, limit int) error {
	if a.json() {
		return a.printJSON(v)
	}
	var text strings.Builder
	for _, f := range v.Findings {
		severity := string(f.Severity)
		if f.Repaired {
			severity = "mended"
		}
		fmt.Fprintf(&text, "%-8s %-18s %s\n", severity, f.Code, plain(f.Where))
		fmt.Fprintf(&text, "         expected %s\n         found %s\n", plain(f.Want), plain(f.Found))
		if f.Repair != "" {
			fmt.Fprintf(&text, "         %s\n", plain(f.Repair))
		}
	}
	for _, code := range v.Codes() {
		if more := v.Counts[code].Found - limit; more > 0 {
			fmt.Fprintf(&text, "and %d more of %s\n", more, code)
		}
	}
	for _, s := range v.Servers {
		fmt.Fprintf(&text, "%s %s, %s\n", plain(s.Name), plain(s.Version), plain(s.Mode))
	}
	fmt.Fprintf(&text, "layout %d of the keys, of %d that this binary knows\nzone data %s\n", v.Layout, store.Layout, v.ZoneData)
	fmt.Fprintf(&text, "%s: %s, %s, %s, %d mended\n", v.Queue, words.Count(v.Models, "model", "models"),
		words.Count(v.Errors, "error", "errors"), words.Count(v.Warnings, "warning", "warnings"), v.Repaired)
	_, err := fmt.Fprint(a.stdout, text.String())
	return err
}

func healthCommand(a *app) *cobra.Command {
	var address string
	var timeout time.Duration
	command := &cobra.Command{
		Use: "health [URL]", Short: "Ask a daemon whether it is well, for images without a shell", Args: cobra.MaximumNArgs(1),
		Long: `Ask a daemon whether it is well, and say why not. URL is that of /livez (would a restart help?) or /readyz (does it do its work?), such
as http://127.0.0.1:8080/livez. 127.0.0.1:8080 or :8080 alone means /readyz there. What URL leaves out, as /livez or no URL does, is the
address of --health, as of the daemon: REFRESHD_HEALTH serves both.

Exit codes: 0 it is well, 1 it is not or does not answer, 2 wrong usage.`,
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && strings.HasPrefix(args[0], "/"):
				address += args[0]
			case len(args) > 0:
				address = args[0]
			}
			target, err := healthURL(address)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), timeout)
			defer cancel()
			report, err := readHealth(ctx, target)
			if err != nil {
				return fmt.Errorf("ask for health: %w", err)
			}
			if err := a.print(report, [][2]any{{"status", report.Status}}); err != nil || report.Status == "ok" {
				return err
			}
			return fmt.Errorf("%s: %s", target, cmp.Or(report.Why, "it does not say why"))
		},
	}
	command.Flags().StringVar(&address, "health", "", "the `ADDRESS` at which the daemon answers")
	timeout = 3 * time.Second
	command.Flags().Var((*duration)(&timeout), "health-timeout", "how long to wait for the answer")
	return command
}

// healthURL completes a missing scheme, host or path.
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

// mostHealth bounds the answer, in bytes: hundreds of loops.
const mostHealth = 1 << 20

// readHealth uses no proxy and follows no redirect: the daemon is near.
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
