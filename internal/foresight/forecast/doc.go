// Package forecast tells when a whole fleet of models starts, minute by minute, and how its starts could come more evenly. It walks models
// through the code that decides about them, and keeps counts and no lists: a million models fit in some tens of megabytes. It knows no
// Redis and no clock.
package forecast
