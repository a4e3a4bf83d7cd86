package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

// readTime bounds the reads of one page, or one action.
const readTime = 20 * time.Second

// errAbsent says that the policy of a page is not stored.
var errAbsent = errors.New("expected one that is stored, found none of that name")

// inWords is an error for people, on one line.
func inWords(err error) string {
	const notAllowed = "the user that this dashboard signs in with may not do this. One of the role operator may: refreshd acl tells its rights. ("
	text := document.OneLine(err.Error())
	switch {
	case store.Refused(err):
		return "Redis refused it: " + notAllowed + text + ")"
	case strings.Contains(text, "EXECABORT"): // Redis does not say why
		return "Redis refused it, and nothing was done: most likely " + notAllowed + text + ")"
	case errors.Is(err, context.DeadlineExceeded):
		return "Redis did not answer in time, and it is unknown what was done: look at the page again. (" + text + ")"
	default:
		return text
	}
}

// statusOf is the HTTP status of a page that cannot be shown.
func statusOf(err error) int {
	_, refused := errors.AsType[*document.Error](err)
	switch {
	case errors.Is(err, errAbsent), errors.Is(err, explain.ErrUnknownModel):
		return http.StatusNotFound
	case refused:
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}
