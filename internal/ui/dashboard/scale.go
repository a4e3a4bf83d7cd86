package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model/document"
)

// scale answers an autoscaler with the needed slots of workers: /scale?queue=bigtables&horizon=10m. The default is the first queue.
func (d *Dashboard) scale(w http.ResponseWriter, r *http.Request) {
	sites, name := d.sites.all(), r.FormValue("queue")
	i := slices.IndexFunc(sites, func(s *site) bool { return name == "" || s.queue.Name == name })
	if i < 0 {
		http.Error(w, "queue: expected a queue of this dashboard, found "+document.Found(name), http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	slots, err := operate.PlanSlots(ctx, sites[i].queue, cmp.Or(r.FormValue("horizon"), "10m"))
	if err != nil {
		http.Error(w, inWords(err), statusOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(slots) // the client has gone
}
