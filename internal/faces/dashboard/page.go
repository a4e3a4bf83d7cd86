package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	html "html/template"
	"net/http"
	"net/url"
	"strings"
)

// page is one of the pages of a queue.
type page struct {
	path  string // below the base of the queue; "": the first one
	title string
	nav   bool // the navigation leads to it
	// under is the path of the page that the navigation shows as the current one; "": its own.
	under string
	file  string // of its template, without .html
	// read reads what the page shows. What it returns is .Data of the template.
	read func(ctx context.Context, v *visit) (any, error)
	// live are the fragments that are sent again when they differ.
	live []string
	// drawn: it holds pictures that are drawn for it alone, as data.
	drawn bool
	// form: the page also takes its fields by POST, as they may be long. It changes nothing.
	form bool
}

// pages are all pages, in the order of the navigation.
var pages = []*page{
	&overviewPage, &modelsPage, &modelPage, &failuresPage, &steeringPage, &rejectedPage, &policiesPage, &policyPage, &playgroundPage,
}

// template is that of one page, with the layout.
type template = html.Template

//go:embed *.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// parseTemplates returns the templates of all pages by their files, each with the layout.
func parseTemplates() (map[string]*template, error) {
	layout, err := html.New("").Funcs(functions).ParseFS(templateFiles, "layout.html")
	if err != nil {
		return nil, fmt.Errorf("read the layout: %w", err)
	}
	parsed := map[string]*template{}
	files := []string{"login", "problem"}
	for _, page := range pages {
		files = append(files, page.file)
	}
	for _, file := range files {
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

// functions are what templates can call.
var functions = html.FuncMap{"static": staticPath}

// staticPath is the address of a file, which changes with what it holds: browsers keep it.
func staticPath(name string) (string, error) {
	text, err := staticFiles.ReadFile("static/" + name)
	sum := sha256.Sum256(text)
	return "/static/" + name + "?v=" + hex.EncodeToString(sum[:4]), err
}

// frame is what a template gets.
type frame struct {
	Title    string
	Base     string // of the addresses of the queue
	Queue    string
	Links    []link // the navigation
	Queues   []link // of the queues, if there are several
	ReadOnly bool
	Session  bool   // there is a token, so that one can sign out
	CSRF     string // stands in each form, see the template guard
	Here     string // the address of this page, for the field back of a form
	Stream   string // where the live fragments come from; "": nothing is live
	Told     *telling
	Problem  string // why the page cannot be shown
	Data     any    // what read of the page has returned
	Zone     string // of the times on the page; "": there are none
}

// link is one of the navigation.
type link struct {
	Text, Address string
	Current       bool
}

func (d *Dashboard) frame(site *site, page *page, query url.Values) *frame {
	f := &frame{
		Title: page.title, Base: site.base, Queue: site.queue.Name, ReadOnly: d.config.ReadOnly, Session: d.config.Token != "", CSRF: d.csrf,
		Here: here(site, page, query),
	}
	for _, other := range pages {
		if other.nav {
			f.Links = append(f.Links, link{other.title, site.link(other.path), other.path == page.path || page.under != "" && other.path == page.under})
		}
	}
	if sites := d.shown.all(); len(sites) > 1 {
		for _, other := range sites {
			f.Queues = append(f.Queues, link{other.queue.Name, other.link(""), other == site})
		}
	}
	return f
}

// here is the address of a page without what is told only once.
func here(site *site, page *page, query url.Values) string {
	address := site.link(page.path)
	if rest := without(query, "told"); len(rest) > 0 {
		address += "?" + rest.Encode()
	}
	return address
}

func without(query url.Values, name string) url.Values {
	rest := url.Values{}
	for key, values := range query {
		if key != name {
			rest[key] = values
		}
	}
	return rest
}

// Handler serves all addresses.
func (d *Dashboard) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /static/", keepable(http.FileServerFS(staticFiles)))
	mux.HandleFunc("GET /login", d.login)
	mux.HandleFunc("POST /login", d.login)
	mux.HandleFunc("POST /logout", d.logout)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, d.shown.all()[0].link(""), http.StatusSeeOther)
	})
	for _, page := range pages {
		at := page.path
		if at == "" {
			at = "{$}"
		}
		show := d.onSite(func(w http.ResponseWriter, r *http.Request, site *site) { d.show(w, r, site, page) })
		mux.HandleFunc("GET /q/{queue}/"+at, show)
		if page.form {
			mux.HandleFunc("POST /q/{queue}/"+at, show)
		}
		if page.live != nil {
			mux.HandleFunc("GET /q/{queue}/live/"+at, d.onSite(func(w http.ResponseWriter, r *http.Request, site *site) { d.stream(w, r, site, page) }))
		}
	}
	mux.HandleFunc("GET /", d.absent)
	for _, picture := range pictures {
		mux.HandleFunc("GET /q/{queue}/"+picture.path, d.onSite(func(w http.ResponseWriter, r *http.Request, site *site) { d.draw(w, r, site, &picture) }))
	}
	for _, action := range actions {
		mux.HandleFunc("POST /q/{queue}/"+action.path, d.onSite(func(w http.ResponseWriter, r *http.Request, site *site) { d.act(w, r, site, &action) }))
	}
	return d.guard(mux)
}

func (d *Dashboard) absent(w http.ResponseWriter, _ *http.Request) {
	f := &frame{Title: "Not found", Here: "/", Session: d.config.Token != "", Problem: "There is no such page, or no such queue in this dashboard."}
	for _, site := range d.shown.all() {
		f.Links = append(f.Links, link{Text: site.queue.Name, Address: site.link("")})
	}
	d.render(w, http.StatusNotFound, "problem", f)
}

func keepable(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=86400")
		files.ServeHTTP(w, r)
	})
}

// onSite finds the queue that an address names.
func (d *Dashboard) onSite(do func(http.ResponseWriter, *http.Request, *site)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		site := d.site(r.PathValue("queue"))
		if site == nil {
			d.absent(w, r)
			return
		}
		do(w, r, site)
	}
}

func (d *Dashboard) show(w http.ResponseWriter, r *http.Request, site *site, page *page) {
	if page.drawn {
		w.Header().Set("Content-Security-Policy", policyOfDrawn)
	}
	query := r.URL.Query()
	f := d.frame(site, page, query)
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil {
			http.Error(w, "expected a form of at most 256 KiB", http.StatusBadRequest)
			return
		}
		query = r.PostForm
	}
	f.Told = d.tellings.take(query.Get("told"))
	if page.live != nil {
		f.Stream = strings.Replace(f.Here, site.base+"/", site.base+"/live/", 1)
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	var err error
	if f.Data, err = page.read(ctx, d.visit(site, query)); err != nil {
		d.showProblem(w, f, err)
		return
	}
	if own, is := f.Data.(interface{ heading() string }); is {
		f.Title = own.heading()
	}
	f.Zone = "UTC"
	if own, is := f.Data.(interface{ zone() string }); is {
		f.Zone = own.zone()
	}
	d.render(w, http.StatusOK, page.file, f)
}

func (d *Dashboard) showProblem(w http.ResponseWriter, f *frame, err error) {
	f.Problem, f.Stream = inWords(err), ""
	d.render(w, statusOf(err), "problem", f)
}

// render writes a whole page. A template that fails has written nothing.
func (d *Dashboard) render(w http.ResponseWriter, status int, file string, f *frame) {
	var text bytes.Buffer
	if err := d.theming[file].ExecuteTemplate(&text, "layout", f); err != nil {
		d.config.Log.Error().Err(err).Msg("rendering a page failed")
		http.Error(w, "the page could not be rendered; the log tells why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the browser has gone
}
