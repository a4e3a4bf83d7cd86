// Package words has the English that schedules and policies share: it cuts a text into words, reads and writes numbers, ordinals,
// lengths of time, lists and counts, and finds the known sentence that is nearest to an unknown one.
package words
