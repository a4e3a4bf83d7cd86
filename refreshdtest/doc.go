// Package refreshdtest lets an application test its policies and its handlers on a virtual clock: a day takes milliseconds, and nothing depends on
// how busy the machine is.
//
//	func TestAFeedThatIsDownForAnAfternoon(t *testing.T) {
//		refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
//			q.Handle(refresh) // the same worker.Handler that runs in production
//			q.Put(`{uid: tbl_1, rrule: FREQ=HOURLY, policy: {timeout: 10m, retries: [1m, 5m]}}`)
//			q.Advance(2 * time.Hour)
//			if attempts := q.Attempts("tbl_1"); len(attempts) != 2 {
//				t.Errorf("expected two attempts, found %v", attempts)
//			}
//		})
//	}
//
// A Queue is a whole one: a Redis in memory, the code of dispatcher, poller and worker pool, and their scripts. It does nothing but inside of
// Advance and AdvanceTo, and of what asks it for something, and what happens then happens in the same order each time.
//
// A test runs in a bubble of testing/synctest. There time.Now, time.Sleep, timers and the deadlines of contexts follow the virtual
// clock, which moves in Advance alone; so a handler that waits for its context waits for the virtual deadline. The clock begins at
// Begin; AdvanceTo goes to a time of your own. A bubble allows no t.Run and no t.Parallel inside, and a handler that talks to a real network
// must be given a fake of it, as the clock does not move while it waits for bytes.
//
// To look at a policy alone, without a handler and over years, there is `refreshd simulate`.
package refreshdtest
