// Package transfer moves models between queues as JSON lines, with all that a queue knows of them and the
// calendars, limits and policies that they go by, while daemons run on both sides.
package transfer
