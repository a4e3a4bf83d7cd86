// Package transfer moves models between queues as JSON lines, with all that a queue knows of them, while daemons run on both sides.
package transfer
