package dashboard

import (
	"context"
	"net/http"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// action is something that a form does.
type action struct {
	path string // below the base of the queue
	do   func(ctx context.Context, v *visit) (outcome, error)
}

// outcome is what became of an action that was done.
type outcome struct {
	told string // in words
	next string // the address of the page that shows them; "": the page of the form
}

// actions are all that can be done.
var actions = []action{
	{"model/run", steer(model.CommandRun)}, {"model/enable", steer(model.CommandEnable)}, {"model/disable", steer(model.CommandDisable)},
	{"model/hold", holdModel}, {"model/release", releaseHold},
	{"failures/run", runFailures},
	{"hold/put", putHold},
	{"hold/release", releaseHold},
	{"circuit/open", openCircuit},
	{"circuit/close", closeCircuit},
	{"limit/set", setLimit},
	{"limit/rm", removeLimit},
	{"bulk/cancel", cancelBulk},
	{"rejected/requeue", requeueRejected},
	{"rejected/drop", dropRejected},
}

// act carries an action out, and leads to a page that tells what became of it.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request, site *site, action *action) {
	if d.config.ReadOnly {
		http.Error(w, "this dashboard only shows (--read-only), and nothing was done", http.StatusForbidden)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, "expected a form of at most 256 KiB, and nothing was done", http.StatusBadRequest)
		return
	}
	if entryOf(r.Context()) != byBearer && !sameText(r.PostForm.Get("csrf"), d.csrf) {
		http.Error(w, "this form is older than the dashboard or not of it, and nothing was done: load its page again", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	done, err := action.do(ctx, d.visit(site, r.PostForm))
	told, next := telling{Text: done.told}, done.next
	if err != nil {
		told = telling{Text: inWords(err), Failed: true}
	}
	if next == "" {
		next = backTo(site, r.PostForm.Get("back"))
	}
	d.lead(w, r, next, told)
}

// backTo is the page of a form, if it is one of this queue.
func backTo(site *site, address string) string {
	if strings.HasPrefix(address, site.base+"/") && !strings.ContainsAny(address, "\\\r\n") {
		return address
	}
	return site.link("")
}

// lead sends a browser to a page that tells something once.
func (d *Dashboard) lead(w http.ResponseWriter, r *http.Request, address string, told telling) {
	if told.Text != "" {
		sign := "?"
		if strings.Contains(address, "?") {
			sign = "&"
		}
		address += sign + "told=" + d.tellings.keep(told)
	}
	http.Redirect(w, r, address, http.StatusSeeOther)
}
