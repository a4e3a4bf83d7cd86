// Package wire holds the tests that drive refreshd from outside, as its users do: the daemons are processes, applications and
// workers know three Redis lists and JSON.
package wire
