package dashboard

import (
	"context"
	"net/http"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// action is done by a form.
type action struct {
	path string // below the base of the queue
	do   func(ctx context.Context, req *request) (outcome, error)
}

// outcome is the result of an action.
type outcome struct {
	text string // for people
	next string // the address of the page that shows it; "": the page of the form
}

// actions are all that can be done.
var actions = []action{
	{"model/run", change(model.CommandRun)}, {"model/enable", change(model.CommandEnable)}, {"model/disable", change(model.CommandDisable)},
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

// act carries an action out, and leads to a page that shows its outcome.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request, site *site, action *action) {
	if d.config.ReadOnly {
		http.Error(w, "this dashboard only shows (--read-only), and nothing was done", http.StatusForbidden)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, "expected a form of at most 256 KiB, and nothing was done", http.StatusBadRequest)
		return
	}
	if credentialOf(r.Context()) != byBearer && !sameText(r.PostForm.Get("csrf"), d.csrf) {
		http.Error(w, "this form is older than the dashboard or not of it, and nothing was done: load its page again", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	done, err := action.do(ctx, d.newRequest(site, r.PostForm))
	one, next := flash{Text: done.text}, done.next
	if err != nil {
		one = flash{Text: inWords(err), Failed: true}
	}
	if next == "" {
		next = backTo(site, r.PostForm.Get("back"))
	}
	sign := "?"
	if strings.Contains(next, "?") {
		sign = "&"
	}
	http.Redirect(w, r, next+sign+"flash="+d.flashes.keep(one), http.StatusSeeOther)
}

// backTo is the page of a form, if it is one of this queue.
func backTo(site *site, address string) string {
	if strings.HasPrefix(address, site.base+"/") && !strings.ContainsAny(address, "\\\r\n") {
		return address
	}
	return site.Link("")
}
