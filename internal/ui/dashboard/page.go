package dashboard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	html "html/template"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/playground"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

type page struct {
	path  string // below the base of the queue; "": the first one
	title string
	nav   bool // the navigation leads to it
	// under is the path of the current page in the navigation; "": its own.
	under string
	file  string // of its template, without .html
	// read reads the page. Its result is .Data of the template.
	read func(ctx context.Context, req *request) (any, error)
	// live are the fragments that are sent again when they differ.
	live  []string
	edits bool // it is for those who may change something
	// form: the page also takes its fields by POST, as they may be long. It changes nothing.
	form bool
}

// pages are in the order of the navigation.
var pages = []*page{
	&overviewPage, &planPage, &modelsPage, &modelPage, &modelEditPage, &bulkPage, &failuresPage, &runningPage, &steeringPage, &auditPage, &journalPage, &rejectedPage, &policiesPage, &policyPage,
	&policyEditPage, &playgroundPage,
	&selectedPage,
}

//go:embed *.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// parseTemplates returns the templates by their files, each with the layout.
func parseTemplates() (map[string]*html.Template, error) {
	layout, err := html.New("").Funcs(functions).ParseFS(templateFiles, "layout.html")
	if err == nil {
		layout, err = layout.Parse(playground.Templates)
	}
	if err != nil {
		return nil, fmt.Errorf("read the layout: %w", err)
	}
	parsed := map[string]*html.Template{}
	for _, file := range append(redis.Map(pages, func(p *page) string { return p.file }), "login", "problem") {
		one, err := layout.Clone()
		if err == nil {
			one, err = one.ParseFS(templateFiles, file+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("read the template %s: %w", file, err)
		}
		parsed[file] = one
	}
	return parsed, nil
}

var functions = html.FuncMap{
	// The address of a file changes with its content, so that browsers may keep it.
	"static": func(name string) (string, error) {
		text, err := staticFiles.ReadFile("static/" + name)
		sum := sha256.Sum256(text)
		return "/static/" + name + "?v=" + hex.EncodeToString(sum[:4]), err
	},
	"inline": policy.IsInline, "labels": model.LabelTerms, "length": document.FormatDuration,
	"indented": indented, "value": definitions.Text, "failed": func(recent string) int { return strings.Count(recent, "1") }, "bad": func(r *store.Record) bool {
		return r.Broken || r.Fault != "" || r.DisabledBy == model.StoppedByPolicy // it does not come right by itself
	},
}

type frame struct {
	*site

	Title    string
	Base     string // of the addresses of the queue
	Queue    string
	Links    []link // the navigation
	Queues   []link // of the queues, if there are several
	ReadOnly bool
	Session  bool   // there is a token, so that one can sign out
	By       string // the name of the token; "": there is none
	Here     string // the address of this page, for the field back of a form
	Stream   string // the address of the live fragments; "": nothing is live
	Flash    *flash
	Problem  string // why the page cannot be shown
	Data     any    // the result of read of the page
	Zone     string // of the times on the page; "": there are none
	Chosen   string // "": none

	zone *time.Location
}

type link struct {
	Text, Address string
	Current       bool
}

func (d *Dashboard) frame(req *request, page *page) *frame {
	f := &frame{
		site: req.site, Title: page.title, Base: req.base, Queue: req.queue.Name, ReadOnly: req.session.readOnly, Session: len(d.auth.tokens) > 0,
		By: req.session.name, Here: req.address(page.path, req.query),
	}
	if f.in(req.zone); req.session.zone != nil {
		f.Chosen = f.Zone
	}
	for _, other := range pages {
		if other.nav {
			f.Links = append(f.Links, link{other.title, req.Link(other.path), other.path == page.path || page.under != "" && other.path == page.under})
		}
	}
	if sites := d.sites.all(); len(sites) > 1 {
		for _, other := range sites {
			f.Queues = append(f.Queues, link{other.queue.Name, other.Link(""), other == req.site})
		}
	}
	return f
}

func (f *frame) in(zone *time.Location) { f.zone, f.Zone = zone, zone.String() }

func (f *frame) read(ctx context.Context, page *page, req *request) (err error) {
	if f.Data, err = page.read(ctx, req); err != nil {
		return err
	}
	if own, is := f.Data.(interface {
		heading() (title string, zone *time.Location)
	}); is {
		title, zone := own.heading()
		f.Title = title
		f.in(zone)
	}
	return nil
}

// Handler serves all addresses.
func (d *Dashboard) Handler() http.Handler {
	mux := http.NewServeMux()
	files := http.FileServerFS(staticFiles)
	mux.HandleFunc("GET /static/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=86400")
		files.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /login", d.login)
	mux.HandleFunc("POST /login", d.login)
	mux.HandleFunc("POST /logout", d.logout)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, d.sites.all()[0].Link(""), http.StatusSeeOther)
	})
	mux.HandleFunc("GET /", d.absent)
	mux.HandleFunc("GET /scale", d.scale)
	mux.HandleFunc("GET /zone", d.chooseZone)
	onSite := func(method, path string, do func(http.ResponseWriter, *http.Request, *request)) {
		mux.HandleFunc(method+" /q/{queue}/"+path, func(w http.ResponseWriter, r *http.Request) {
			for _, site := range d.sites.all() {
				if site.queue.Name == r.PathValue("queue") {
					req := d.newRequest(site, d.session(r), r.URL.Query())
					if method == http.MethodPost {
						req.operator.From = "dashboard " + d.auth.client(r)
						r = r.WithContext(operate.Acting(r.Context(), req.operator))
					}
					do(w, r, req)
					return
				}
			}
			d.absent(w, r)
		})
	}
	for _, page := range pages {
		show, path := func(w http.ResponseWriter, r *http.Request, req *request) { d.show(w, r, req, page) }, cmp.Or(page.path, "{$}")
		onSite(http.MethodGet, path, show)
		if page.form {
			onSite(http.MethodPost, path, show)
		}
		if page.live != nil {
			onSite(http.MethodGet, "live/"+path, func(w http.ResponseWriter, r *http.Request, req *request) { d.stream(w, r, req, page) })
		}
	}
	for _, picture := range pictures {
		onSite(http.MethodGet, picture.path, func(w http.ResponseWriter, r *http.Request, req *request) { d.draw(w, r, req, &picture) })
	}
	for _, action := range actions {
		onSite(http.MethodPost, action.path, func(w http.ResponseWriter, r *http.Request, req *request) { d.act(w, r, req, &action) })
	}
	return d.guard(compressed(mux))
}

// compressed sends gzip to whoever accepts it, but streams as they are: an open one would keep a megabyte of tables.
var compressed, _ = gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.MinSize(0), // good options
	gzhttp.ContentTypeFilter(func(kind string) bool { return kind != streamType }))

func (d *Dashboard) absent(w http.ResponseWriter, _ *http.Request) {
	d.render(w, http.StatusNotFound, "problem", &frame{
		Title: "Not found", Here: "/", Session: len(d.auth.tokens) > 0, Problem: "There is no such page, or no such queue in this dashboard.",
		Links: redis.Map(d.sites.all(), func(s *site) link { return link{Text: s.queue.Name, Address: s.Link("")} }),
	})
}

func (d *Dashboard) show(w http.ResponseWriter, r *http.Request, req *request, page *page) {
	f := d.frame(req, page)
	if page.edits && f.ReadOnly {
		f.Problem = "This only shows: you may not change anything here."
		d.render(w, http.StatusForbidden, "problem", f)
		return
	}
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil {
			http.Error(w, "expected a form of at most 256 KiB", http.StatusBadRequest)
			return
		}
		req.query = r.PostForm
	}
	f.Flash = takeFlash(w, r)
	d.answer(w, r, http.StatusOK, f, page, req)
}

func (d *Dashboard) answer(w http.ResponseWriter, r *http.Request, status int, f *frame, page *page, req *request) {
	if page.live != nil {
		f.Stream = strings.Replace(f.Here, f.base+"/", f.base+"/live/", 1)
		f.beat.Load().pages.Delete(req.session.key() + f.Here) // an older reading
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	err := f.read(ctx, page, req)
	if to, away := errors.AsType[redirect](err); away {
		http.Redirect(w, r, string(to), http.StatusSeeOther)
		return
	}
	if err != nil {
		f.Problem, f.Stream, f.Zone = inWords(err), "", ""
		d.render(w, statusOf(err), "problem", f)
		return
	}
	d.render(w, status, page.file, f)
}

// render writes a whole page, or nothing if the template fails.
func (d *Dashboard) render(w http.ResponseWriter, status int, file string, f *frame) {
	var text bytes.Buffer
	if err := d.templates[file].ExecuteTemplate(&text, "layout", f); err != nil {
		d.config.Log.Error().Err(err).Msg("rendering a page failed")
		http.Error(w, "the page could not be rendered; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the browser has gone
}
