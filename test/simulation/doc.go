// Package simulation holds the tests that run the whole system in one process, one step at a time, in an order that a seed
// decides, with every fault that a network, a process, a clock and a Redis can have.
//
// Dispatchers and pollers are the real ones, the scripts are the real ones on miniredis, and time is virtual: Redis TIME,
// which only the simulation turns. Workers and operators are played: they call the same methods of scripts.Store in the same
// order as worker.Pool and the command line do. The pool itself cannot be stepped: its goroutines share a queue of messages
// and real timers, so what it does next is not decided by the replies of Redis alone. Its
// real loop, like the loops of dispatcher and poller, runs on a fake clock in loop_test.go, without faults of the network.
//
// In a third of the worlds operators steer the fleet: they begin and release holds, which may take back what runs, set limits, put calendars and
// begin bulks, and models have labels, limits and circuits. The journal alone decides what keys, circuits and bulks must be; steer_test.go
// has what operators do, blocker_test.go and index_test.go what they may rely on, bug_test.go the bugs that must be found.
//
// In a quarter of the worlds each policies promise that models do not grow old (promise_test.go), few fingerprints are kept apart
// (index_test.go), and operators export models and import them again (import_test.go). calm_test.go plays at the end what chance brings about too
// seldom.
//
// In some worlds dispatchers or pollers are away while deadlines pass, and nothing expires for a while behind an outage (heard_test.go). What dead
// workers had taken is handed back there as long as its deadline is not judged.
//
// Each daemon is a goroutine that hands over a baton at each Redis call, so exactly one runs at a time. After each executed
// command the whole queue is read and compared with a reference that knows nothing of Lua: each entry of the journal must be
// the decision of package model about the state as it was at that very moment, with a message that was really sent, and
// everything in Redis must be what follows from it.
package simulation
