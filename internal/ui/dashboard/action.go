package dashboard

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

type action struct {
	path string // below the base of the queue
	do   func(ctx context.Context, req *request) (outcome, error)
	page *page // with its form, which is shown again after a refusal; nil: the next page shows the refusal
}

type outcome struct {
	text string // for people
	next string // the address of the page that shows it; "": the page of the form
}

const holdReleased = "The hold %s is released: what waits for it starts once."

var actions = []action{
	{path: "model/run", do: change(model.CommandRun)}, {path: "model/enable", do: change(model.CommandEnable)},
	{path: "model/disable", do: change(model.CommandDisable)},
	{path: "model/accept", do: change(model.CommandAccept)}, {path: "model/reject", do: change(model.CommandReject)},
	{path: "model/hold", do: holdModel}, {path: "model/release", do: named("id", holdReleased, releaseHold)},
	{path: "models/all", do: beginBulk}, {path: "models/change", do: changeSelected},
	{path: "model/save", do: saveModel, page: &modelEditPage},
	{path: "policy/save", do: savePolicy, page: &policyEditPage}, {path: "policy/rm", do: removePolicy},
	{path: "failures/run", do: runFailures},
	{path: "hold/put", do: putHold},
	{path: "hold/release", do: named("id", holdReleased, releaseHold)},
	{path: "circuit/open", do: openCircuit},
	{path: "circuit/close", do: keyed("The circuit %s is closed: its models start again.", operate.Operator.CloseCircuit)},
	{path: "limit/set", do: setLimit},
	{path: "limit/rm", do: named("key", "The limit of %s is forgotten: what policies say is in force.", operate.Operator.RemoveLimit)},
	{path: "limit/open", do: keyed("The key %s is open: its models start again.", operate.Operator.OpenLimit)},
	{path: "bulk/cancel", do: named("id", "The bulk %s is cancelled; what it has done stays done.", cancelBulk)},
	{path: "rejected/requeue", do: named("id", "The message %s is requeued: look whether it is rejected again.", message(operate.Operator.RequeueRejected))},
	{path: "rejected/drop", do: named("id", "The message %s is forgotten.", message(operate.Operator.DropRejected))},
	{path: "rejected/requeue-group", do: messageGroup("%s requeued: look whether they are rejected again.", operate.Operator.RequeueRejected)},
	{path: "rejected/drop-group", do: messageGroup("%s forgotten.", operate.Operator.DropRejected)},
	{path: "worker/quiet", do: order(store.PoolQuiet, "takes nothing new from the next heartbeat on")},
	{path: "worker/resume", do: order("", "takes attempts again from the next heartbeat on")},
	{path: "worker/stop", do: order(store.PoolStop, "stops with the next heartbeat")},
}

// act carries an action out, and leads to a page that shows its outcome.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request, req *request, action *action) {
	switch {
	case d.config.ReadOnly:
		http.Error(w, "this dashboard is read-only, and nothing was done", http.StatusForbidden)
		return
	case req.session.readOnly:
		http.Error(w, "your token is that of a viewer, and nothing was done: sign in with that of an operator", http.StatusForbidden)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, "expected a form of at most 256 KiB, and nothing was done", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	req.query = r.PostForm
	done, err := action.do(ctx, req)
	if err != nil && action.page != nil {
		d.refuse(w, r, req, action, err)
		return
	}
	one, next := flash{Text: done.text}, done.next
	if err != nil {
		one = flash{Text: inWords(err), Failed: true}
	}
	if next == "" {
		next = req.Link("")
		if back := req.get("back"); strings.HasPrefix(back, req.base+"/") && !strings.ContainsAny(back, "\\\r\n") {
			next = back // the page of the form, which is one of this queue
		}
	}
	one.set(w, r)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// refuse shows the page of a form again, with what was typed and why it was refused.
func (d *Dashboard) refuse(w http.ResponseWriter, r *http.Request, req *request, action *action, err error) {
	page := *req
	page.query = url.Values{"uid": r.PostForm["uid"], "name": r.PostForm["name"]}
	f, status := d.frame(&page, action.page), http.StatusUnprocessableEntity
	if _, typed := errors.AsType[*document.Error](err); !typed {
		status = statusOf(err)
	}
	if status != http.StatusUnprocessableEntity { // otherwise it is shown beside its field
		f.Flash = &flash{Text: inWords(err), Failed: true}
	}
	d.answer(w, r, status, f, action.page, req)
}

const flashCookie = "refreshd_flash"

// flash is a message about an action. A cookie brings it to the next page: in an address anybody could write one.
type flash struct {
	Text   string
	Failed bool
}

func (f flash) set(w http.ResponseWriter, r *http.Request) {
	text := map[bool]string{true: "!", false: " "}[f.Failed] + document.Shorten(f.Text, 2000) // as a cookie has at most 4096 bytes
	setCookie(w, r, flashCookie, base64.RawURLEncoding.EncodeToString([]byte(text)), time.Minute)
}

// takeFlash returns a flash once; nil: there is none.
func takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	setCookie(w, r, flashCookie, "", -time.Second)
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(text) == 0 {
		return nil
	}
	return &flash{string(text[1:]), text[0] == '!'}
}
