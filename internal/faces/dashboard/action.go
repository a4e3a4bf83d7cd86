package dashboard

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

type action struct {
	path string // below the base of the queue
	do   func(ctx context.Context, req *request) (outcome, error)
	page *page // of its form, which is shown again with what was typed if that is refused; nil: the next page tells of it
}

type outcome struct {
	text string // for people
	next string // the address of the page that shows it; "": the page of the form
}

var actions = []action{
	{path: "model/run", do: change(model.CommandRun)}, {path: "model/enable", do: change(model.CommandEnable)},
	{path: "model/disable", do: change(model.CommandDisable)},
	{path: "model/hold", do: holdModel, page: &modelPage}, {path: "model/release", do: releaseHold},
	{path: "models/all", do: changeMany},
	{path: "model/save", do: saveModel, page: &modelEditPage},
	{path: "policy/save", do: savePolicy, page: &policyEditPage}, {path: "policy/rm", do: removePolicy},
	{path: "failures/run", do: runFailures},
	{path: "hold/put", do: putHold},
	{path: "hold/release", do: releaseHold},
	{path: "circuit/open", do: openCircuit},
	{path: "circuit/close", do: closeCircuit},
	{path: "limit/set", do: setLimit},
	{path: "limit/rm", do: removeLimit},
	{path: "bulk/cancel", do: cancelBulk},
	{path: "rejected/requeue", do: requeueRejected},
	{path: "rejected/drop", do: dropRejected},
	{path: "worker/quiet", do: order(store.PoolQuiet, "takes nothing new from the next heartbeat on")},
	{path: "worker/resume", do: order("", "takes attempts again from the next heartbeat on")},
	{path: "worker/stop", do: order(store.PoolStop, "stops with the next heartbeat")},
}

// act carries an action out, and leads to a page that shows its outcome.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request, site *site, action *action) {
	session := d.session(r)
	switch {
	case d.config.ReadOnly:
		http.Error(w, "this dashboard is read-only, and nothing was done", http.StatusForbidden)
		return
	case session.readOnly:
		http.Error(w, "your token is that of a viewer, and nothing was done: sign in with that of an operator", http.StatusForbidden)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, "expected a form of at most 256 KiB, and nothing was done", http.StatusBadRequest)
		return
	}
	if !session.program && !d.isFormToken(r.PostForm.Get("csrf")) {
		http.Error(w, "this form is older than the dashboard or not of it, and nothing was done: load its page again", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	done, err := action.do(ctx, d.newRequest(site, session, r.PostForm))
	if err != nil && action.page != nil {
		d.refuse(w, r, site, action, session, err)
		return
	}
	one, next := flash{Text: done.text}, done.next
	if err != nil {
		one = flash{Text: inWords(err), Failed: true}
	}
	if next == "" {
		next = site.Link("")
		if back := r.PostForm.Get("back"); strings.HasPrefix(back, site.base+"/") && !strings.ContainsAny(back, "\\\r\n") {
			next = back // the page of the form, which is one of this queue
		}
	}
	sign := "?"
	if strings.Contains(next, "?") {
		sign = "&"
	}
	http.Redirect(w, r, next+sign+"flash="+d.flashes.keep(one), http.StatusSeeOther)
}

// refuse shows the page of a form again, with what was typed and why nothing was done.
func (d *Dashboard) refuse(w http.ResponseWriter, r *http.Request, site *site, action *action, session session, err error) {
	f, status := d.frame(site, action.page, session, url.Values{"uid": r.PostForm["uid"], "name": r.PostForm["name"]}), http.StatusUnprocessableEntity
	f.Typed, f.refusal = r.PostForm, refusal{action.path, err}
	if _, typed := errors.AsType[*document.Error](err); !typed {
		status = statusOf(err)
	}
	if action.page.edits && status != http.StatusUnprocessableEntity { // else it stands beside its field
		f.Flash = &flash{Text: inWords(err), Failed: true}
	}
	d.answer(w, r, status, f, action.page, r.PostForm)
}

// flash is a message about an action, which one page shows.
type flash struct {
	Text   string
	Failed bool
}

// flashes are kept here and not in an address, in which anybody could write one. It is safe for concurrent use.
type flashes struct {
	mu    sync.Mutex
	order []string          // guarded by mu: ids, oldest first
	byID  map[string]*flash // guarded by mu
}

// keep returns the id by which one page shows it.
func (f *flashes) keep(one flash) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.order) == 100 { // so many that nobody has read
		delete(f.byID, f.order[0])
		f.order = f.order[1:]
	}
	id := rand.Text()
	f.order, f.byID[id] = append(f.order, id), &one
	return id
}

// take returns a flash once; nil: there is none.
func (f *flashes) take(id string) *flash {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.byID[id]
	delete(f.byID, id)
	return one
}
