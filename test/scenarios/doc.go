// Package scenarios holds the stories that refreshd was written for, as tests: a thumbnail after an edit, a big table at
// 6 AM and 4 PM that gives up, and one that goes on with the next planned refresh.
//
// They run on a virtual clock through the real scripts, dispatcher and poller. Each step of a story states by hand what the
// model then is; nothing is copied from what the code has answered.
package scenarios
