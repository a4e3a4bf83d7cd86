// Package testkit is the one set of fixtures for tests. All of them are gone when their test ends.
//
//	Main                           runs the tests of a package, and fails when a goroutine is left
//	Redis, Miniredis, Cluster      an empty Server of that kind
//	ReplicatedCluster              a Redis Cluster with a replica of each master
//	Server.KillMaster              a crash of one master of it; Server.AwaitFailover, Server.RestartNode: what comes then
//	Server.MoveSlot                a slot of a cluster goes to another master while it is used
//	Both, BothIfLong               one test on a miniredis and on a redis-server; the latter on one of them unless the long tests run
//	TLS, NewAuthority              a redis-server that listens for TLS, and the certificates for it
//	Server.Kill, Server.Restart    a crash of the server, and its return
//	Server.Dump                    every key with its value, to compare the state before and after a call
//	FreeAddress                    an address that nobody listens on
//	Refreshd, Start, Binary        the compiled command, or another program, as a Process
//	Lines                          a log to wait for, line by line
//	Must, Equal, FailIf, StopIf    checks of a test
//	Await, Eventually, Limit       wait for a value, for a condition, and no longer than this
//	Buffer                         an output to read while somebody writes
//	AtEnd                          ends what the tests of a package share
//	RequireProgram                 skips a test when a program is missing; fails it in CI
//
// Package testkit/browser looks at pages with Chromium.
//
// Package testkit/fixture builds a queue of refreshd, and the users of its ACL, on such a Server.
//
// A test asks for a server and owns it until it ends:
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
//
//	func TestStart(t *testing.T) {
//		testkit.Both(t, func(t *testing.T, s *testkit.Server) {
//			client := s.Client(t)
//			...
//		})
//	}
//
// Servers are lent, not shared: two tests never hold the same one at the same time, so tests may run in parallel and may
// empty or stop what they were given. With Main, an idle server is emptied and lent again, which saves its start; without
// Main each server is stopped when its test ends.
//
// Only _test files may import this package.
package testkit
