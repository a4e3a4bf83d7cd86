// Package attention tells what of a queue is stopped or wrong, as sentences of which each has a command and a page that show more. The command
// line and the dashboard begin with them.
package attention
