// Package dashboard shows a queue in a browser: HTML that is rendered here, with plain links and forms. A small script replaces the
// parts of an open page that have changed; without it everything works as well.
//
// # How to add a page
//
// One noun, one file: noun.go has a page in a variable and the function that reads it, noun.html its template. List the variable in pages of
// page.go, in the order of the navigation.
//
//	var nounPage = page{path: "noun", title: "Nouns", read: readNouns, live: []string{"noun-list"}, nav: true}
//
//	func readNouns(ctx context.Context, req *request) (any, error)   // req.queue, req.query; its result is .Data of the template
//
// noun.html defines "content", and each live fragment by its own name. The page includes a fragment as
//
//	<div id="noun-list" data-live>{{template "noun-list" .}}</div>
//
// While a page is open, it is read again after each change of the queue, once for all browsers that look at the same address, and the
// fragments that differ are sent. A fragment stays as it is while somebody types in it, or has filled a field of it: put other forms outside.
// Only html/template writes texts of users: nothing here makes template.HTML of them.
//
// # How to add an action
//
// An action is a POST form, and a row of actions of action.go:
//
//	<form method="post" action="{{.Base}}/noun/cut">{{template "guard" .}}<input type="hidden" name="uid" value="{{.Data.UID}}">…</form>
//
//	{path: "noun/cut", do: cutNoun}
//
//	func cutNoun(ctx context.Context, req *request) (outcome, error)  // req.query are the fields of the form
//
// The outcome has a text for people, and the page that shows it. An error is shown on the page in the field back of the form. With
// --read-only, and from a viewer, an action is refused before do runs. Offer a form only where {{if not .ReadOnly}}.
package dashboard
