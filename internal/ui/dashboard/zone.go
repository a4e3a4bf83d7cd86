package dashboard

import (
	"cmp"
	"fmt"
	html "html/template"
	"net/http"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

const (
	zoneCookie = "refreshd_zone"
	zoneTime   = 365 * 24 * time.Hour
	maxZone    = 64 // bytes of a name
)

func loadZone(name string) *time.Location {
	if name == "" || len(name) > maxZone {
		return nil
	}
	zone, _ := schedule.Zone(name)
	return zone
}

// chosenZone is the zone that the browser has chosen; nil: none.
func chosenZone(r *http.Request) *time.Location {
	cookie, err := r.Cookie(zoneCookie)
	if err != nil {
		return nil
	}
	return loadZone(cookie.Value)
}

// chooseZone stores the zone in the browser, and leads back to the page.
func (d *Dashboard) chooseZone(w http.ResponseWriter, r *http.Request) {
	name, age := cmp.Or(strings.TrimSpace(r.FormValue("other")), r.FormValue("zone")), zoneTime
	switch {
	case name == "":
		age = -time.Second
	case loadZone(name) == nil:
		http.Error(w, document.Refuse("zone", "an IANA time zone such as Europe/Berlin", document.Found(name)).Error(), http.StatusBadRequest)
		return
	}
	setCookie(w, r, zoneCookie, name, age)
	back := r.FormValue("back")
	if !strings.HasPrefix(back, "/q/") || strings.ContainsAny(back, "\\\r\n") {
		back = "/"
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// zoneOf is the zone of the page of a model: the chosen one, or that of its schedule.
func (req *request) zoneOf(m *model.Model) *time.Location {
	if req.session.zone != nil {
		return req.session.zone
	}
	return explain.ZoneOf(m)
}

// Clock is an instant on the clock of the page; zero: there is none.
func (f *frame) Clock(at time.Time) html.HTML {
	if at.IsZero() {
		return "–"
	}
	return html.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, model.FormatTime(at), clock(at, f.zone)))
}

// Moment is how far an instant is away, which the browser keeps up to date, with the instant as its title; zero: there is none.
func (f *frame) Moment(at, now time.Time) html.HTML {
	if at.IsZero() {
		return "–"
	}
	return html.HTML(fmt.Sprintf(`<time datetime="%s" title="%s" data-from="%d">%s</time>`,
		model.FormatTime(at), clock(at, f.zone), now.UnixMilli(), distance(at, now)))
}
