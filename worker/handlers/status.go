package handlers

import "slices"

// outcome is what a status makes of an attempt.
type outcome string

const (
	succeeds     outcome = "success"
	foundNothing outcome = "success that found nothing new"
	passes       outcome = "failure; the policy decides"
	retried      outcome = "failure; retried whatever the policy says"
	fails        outcome = "final failure: the model is disabled"
)

// status is what some statuses mean: to HTTP, where they are the result, and to Fetch, which wants a file.
type status struct {
	codes      []int // none: the others of the class
	class      int
	http, file outcome
	why        string
}

// statuses are all known ones (RFC 9110, section 15, and others). docs/worker.md has them as a table.
var statuses = []status{
	{[]int{200, 203}, 2, succeeds, succeeds, "the whole answer, even if a proxy changed it on its way"},
	{[]int{202, 204, 205}, 2, succeeds, passes, "there is no file in it, or not yet"},
	{nil, 2, succeeds, passes, "no whole file: of 206 and 226 a part that nobody asked for"},
	{[]int{304}, 3, foundNothing, foundNothing, "`--fetch` had asked; else as any other 3xx"},
	{nil, 3, passes, passes, "`--http` follows none, as the payload would be lost; `--fetch` follows ten"},
	{[]int{407}, 4, retried, retried, "your proxy refused the worker; no owner hears of it"},
	{[]int{408, 460, 499}, 4, passes, passes, "the server or a proxy gave the connection up"},
	{[]int{409, 423, 424, 449}, 4, passes, passes, "somebody else works on it, or must first"},
	{[]int{412, 416}, 4, passes, passes, "about conditions and ranges, which the next request need not have"},
	{[]int{421, 425}, 4, passes, passes, "about the connection, and the next has another"},
	{[]int{420, 429}, 4, passes, passes, "asked too often"},
	{nil, 4, fails, fails, "the same request gets the same answer"},
	{nil, 5, passes, passes, "the server's own fault"},
}

func statusOf(code int) status {
	for _, s := range statuses {
		if slices.Contains(s.codes, code) || s.codes == nil && s.class == code/100 {
			return s
		}
	}
	return status{http: passes, file: passes}
}
