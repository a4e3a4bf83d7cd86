// Package demo is refreshd in one process, for people who want to watch it: an embedded Redis, a web server on the loopback
// interface whose feeds fail in the ways of real ones, models that are due every few seconds, and the real dispatcher, poller and
// workers.
//
// Nothing is faked. The feeds answer over HTTP, the scripts run in Redis, and whatever an application or an owner does in the
// demo is a JSON message on the control list.
package demo
