package handlers

import "slices"

// outcome is the result of an attempt by a status.
type outcome string

const (
	succeeds     outcome = "success"
	foundNothing outcome = "success that found nothing new"
	passes       outcome = "failure; the policy decides"
	retried      outcome = "failure; retried whatever the policy says"
	fails        outcome = "final failure: the model is disabled"
)

// status has the outcomes of some statuses: for HTTP, where they are the result, and for Fetch, which wants a file.
type status struct {
	codes      []int // none: the others of the class
	class      int
	http, file outcome
}

// statuses are from RFC 9110, section 15, and well known others. docs/worker.md has them as a table.
var statuses = []status{
	{[]int{200, 203}, 2, succeeds, succeeds},    // a proxy may have changed the answer on its way
	{nil, 2, succeeds, passes},                  // no file, or a part that nobody asked for
	{[]int{304}, 3, foundNothing, foundNothing}, // Fetch had asked; else as any other 3xx
	{nil, 3, passes, passes},                    // HTTP follows none, as the payload would be lost; Fetch follows ten
	{[]int{407}, 4, retried, retried},           // the proxy of the worker refused it; no owner hears of it
	{mayPass, 4, passes, passes},
	{nil, 4, fails, fails}, // the same request gets the same answer
	{nil, 5, passes, passes},
}

// mayPass are about a connection, a condition, somebody else's work or too many requests: the next request may have another answer.
var mayPass = []int{408, 409, 412, 416, 420, 421, 423, 424, 425, 429, 449, 460, 499}

func statusOf(code int) status {
	for _, s := range statuses {
		if slices.Contains(s.codes, code) || s.codes == nil && s.class == code/100 {
			return s
		}
	}
	return status{http: passes, file: passes}
}
