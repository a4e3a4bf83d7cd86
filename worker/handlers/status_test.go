package handlers

import (
	"flag"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

var update = flag.Bool("update", false, "write the table of docs/worker.md")

// cell are the codes of a row, for the page.
func (s status) cell() string {
	if s.codes == nil && !slices.ContainsFunc(statuses, func(other status) bool { return other.codes != nil && other.class == s.class }) {
		return strconv.Itoa(s.class) + "xx"
	}
	if s.codes == nil {
		return "any other " + strconv.Itoa(s.class) + "xx"
	}
	texts := make([]string, len(s.codes))
	for i, code := range s.codes {
		texts[i] = strconv.Itoa(code)
	}
	return strings.Join(texts, ", ")
}

func TestThePageOfWorkersHasTheStatusesOfTheCode(t *testing.T) {
	const page, begin, end = "../../docs/worker.md", "| status | `--http` | `--fetch` |\n|---|---|---|\n", "<!-- end of statuses -->"
	want := ""
	for _, s := range statuses {
		want += "| " + s.cell() + " | " + string(s.http) + " | " + string(s.file) + " |\n"
	}
	want += "\n"
	stored := string(check.Got(os.ReadFile(page))(t))
	before, rest, opened := strings.Cut(stored, begin)
	got, after, closed := strings.Cut(rest, end)
	stopIf(t, !opened || !closed, "expected a table between %q and %q", begin, end)
	if *update {
		got = want
		must(t, os.WriteFile(page, []byte(before+begin+got+end+after), 0o644)) //nolint:gosec // a page for everybody
	}
	if got != want {
		t.Errorf("%s: the table of statuses is not that of the code, run with -update:\n%s", page, want)
	}
}

func TestAStatusHasOneRow(t *testing.T) {
	var codes []int
	for _, s := range statuses {
		for _, code := range s.codes {
			failIf(t, code/100 != s.class, "%d stands in a row of %dxx", code, s.class)
			failIf(t, slices.Contains(codes, code), "%d stands in two rows", code)
		}
		codes = append(codes, s.codes...)
	}
}

// told is how the poller understands an answer with a status, to either handler.
func told(t *testing.T, code int, after string) (file, service model.Message) {
	t.Helper()
	answer := func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
	}
	f := newFeed(t, answer, FetchOptions{})
	_, service = try(t.Context(), t, post(t, serve(t, answer)), example())
	return f.fetch(t.Context(), f.url), service
}

func TestWhatPassesByItselfIsLeftToThePolicyAndWhatDoesNotIsFinal(t *testing.T) {
	pass := []int{408, 409, 412, 416, 420, 421, 423, 424, 425, 429, 449, 460, 499}
	for code := 400; code < 1000; code++ {
		if code >= 500 && code%100 > 11 { // of these classes all are alike
			continue
		}
		file, service := told(t, code, "")
		for _, m := range []model.Message{file, service} {
			failIf(t, m.Type != model.MessageFailure || m.ErrorType != "http_"+strconv.Itoa(code), "%d: told %+v", code, m)
			retryable := "policy"
			if m.Retryable != nil {
				retryable = strconv.FormatBool(*m.Retryable)
			}
			want := "policy"
			if code == http.StatusProxyAuthRequired {
				want = "true"
			} else if code < 500 && !slices.Contains(pass, code) {
				want = "false"
			}
			if retryable != want {
				t.Errorf("%d: retryable: got %s, want %s", code, retryable, want)
			}
		}
	}
}

func TestARetryAfterLeavesAnyStatusToThePolicy(t *testing.T) {
	for code := 400; code < 500; code++ {
		if code == http.StatusProxyAuthRequired {
			continue
		}
		file, service := told(t, code, "60")
		for _, m := range []model.Message{file, service} {
			if m.Retryable != nil || m.RetryAfter.Seconds() != 60 || !m.ByServer {
				t.Errorf("%d: got %+v, want no retryable, and a retry_after of a server of 60 s", code, m)
			}
		}
	}
}

func TestNoOwnerHearsOfTheProxy(t *testing.T) {
	file, service := told(t, http.StatusProxyAuthRequired, "")
	for _, m := range []model.Message{file, service} {
		if m.Retryable == nil || !*m.Retryable || m.UserFriendlyReason != "" || strings.Contains(strings.ToLower(m.Reason), "proxy") {
			t.Errorf("got %+v, want a retryable failure that does not speak of the proxy", m)
		}
	}
}

func TestOfTheStatusesOfSuccessTwoCarryAFile(t *testing.T) {
	for code := 200; code < 300; code++ {
		file, service := told(t, code, "")
		want := model.MessageFailure
		if code == http.StatusOK || code == http.StatusNonAuthoritativeInfo {
			want = model.MessageSuccess
		}
		if file.Type != want || file.Retryable != nil {
			t.Errorf("--fetch, %d: got %+v, want %s", code, file, want)
		}
		if service.Type != model.MessageSuccess {
			t.Errorf("--http, %d: got %+v, want success", code, service)
		}
	}
}
