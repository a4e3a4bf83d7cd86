// Package schedule says when a model is refreshed as planned: RRULE sets, cron expressions and English, on the wall clock of a
// zone. A Schedule is asked for its next occurrence after an instant; time is always an argument.
package schedule
