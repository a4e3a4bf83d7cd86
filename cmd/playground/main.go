//go:build js

// Command playground is the playground of the dashboard in a browser, without a server. worker.js runs it once for each question: the fields of the form
// come in, their HTML goes out. deploy/playground.sh builds it.
package main

import (
	"fmt"
	html "html/template"
	"net/url"
	"os"
	"strings"
	"syscall/js"
	"time"

	"github.com/refreshd/refreshd/internal/ui/playground"
	"github.com/refreshd/refreshd/model/policy"
)

func main() {
	question := js.Global().Get("question")
	text, err := answer(question.Get("fields").String(), time.UnixMilli(int64(question.Get("now").Float())))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	js.Global().Set("answer", text)
}

func answer(query string, now time.Time) (string, error) {
	fields, _ := url.ParseQuery(query) // the pairs that can be read
	form := playground.ReadForm(fields.Get)
	err := form.Play(playground.Setting{Now: now, Clock: time.Now, Find: func(name string) (policy.Policy, error) {
		return policy.Policy{}, fmt.Errorf("policy %q: %w", name, playground.ErrNotStored)
	}})
	if err != nil {
		return "", err
	}
	page, err := html.New("").Parse(playground.Templates)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = page.ExecuteTemplate(&text, "playground", form)
	return text.String(), err
}
