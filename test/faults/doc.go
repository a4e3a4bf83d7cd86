// Package faults holds the tests that run many daemons at once on a real redis-server and kill them in the middle.
package faults
