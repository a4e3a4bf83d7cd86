// Package model is the state machine of one model. It decides; it never acts: it imports no Redis, no logger and no clock, and
// starts no goroutine. Time is an argument. So the same code serves the daemons, the simulation and the tests.
//
// A [Model] is a definition, the policy and the schedule that follow from it, and a [State]. Each transition is a function that
// returns a [Decision]: the next state and everything to record with it. The caller stores it, or drops it if the state has
// changed meanwhile.
//
//   - Time: [Model.StartOrSkip] of a due model, [Model.Expire] and [Model.Withdraw] at a deadline.
//   - A message of a worker: [Model.Handle], for the current attempt only.
//   - A [Command] of an application: put, remove, run, enable, disable.
//
// One place decides what follows a failure: the failure rule (failure_rule.go). [Model.Forecast] predicts its decision.
package model
