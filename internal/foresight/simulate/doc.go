// Package simulate shows what a policy would do: it runs the code of package model on a clock of its own, which jumps from one
// event to the next. A run begins with a start by hand. How its attempts end is a list, or follows from a seed. The package knows
// no Redis and waits for nothing: weeks take milliseconds.
package simulate
