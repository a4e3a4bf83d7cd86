// Package shadow compares what an old system did with what refreshd would have done. It reads when models were refreshed, and how that ended; for
// each model it lets package model decide, on a clock that jumps, and tells where the two disagree. It knows no Redis, pushes nothing
// and stores nothing.
//
// A run of the old system belongs to the nearest start of ours. Our attempt then ends as the run did, after as long, and package model decides
// what comes next. So each disagreement is told once, and what follows is compared anew: a run that was an hour late makes no
// hundred others late.
package shadow
