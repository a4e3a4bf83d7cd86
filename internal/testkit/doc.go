// Package testkit is the one set of fixtures for tests. All of them are gone when their test ends.
//
// Package testkit/check compares and waits, without a server. Package testkit/browser looks at pages with Chromium.
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
