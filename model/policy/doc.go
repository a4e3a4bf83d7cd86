// Package policy says how long an attempt may take and what happens when it fails: timeout, retries and their delays, how a retry
// is joined with the schedule, classes of errors, when to give up. A policy is data, with a canonical form: Parse reads decoded JSON
// or YAML, and package english reads and prints sentences.
package policy
