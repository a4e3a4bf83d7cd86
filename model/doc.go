// Package model is the pure domain of refreshd: the state of one model, the transitions between states, the retry policy
// and the schedule. It decides; it never acts.
//
// Time is always an argument. The package imports no Redis, no logger, no clock and starts no goroutine, so that the same
// code serves the daemons, the simulation and the tests.
package model
