// Package chart shows a run of attempts: as a table, as JSON lines, as a mermaid gantt chart and as one SVG picture. A run is
// what a simulation says would happen, or what the history says did happen. The package knows no Redis and no clock.
//
// A run is a list of events in the order of time. An attempt begins with start or retry and ends with the next event that
// says how. A final failure is two or three events of one instant: failure or timeout, then exhausted if the retries are used
// up, then disabled.
//
// Every text of an event may come from outside. Each renderer makes it harmless in its own way.
package chart
