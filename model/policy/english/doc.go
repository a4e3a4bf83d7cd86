// Package english reads and prints a policy that is written in English sentences:
//
//   - Refresh the model every 2 hours
//   - Allow 1 hour for a response
//   - On the first failure, retry immediately
//   - On the second failure, retry after 1 minute
//   - Panic
//
// It is forgiving about form and strict about content. Bullets, numbers, indentation, case, full stops, backticks, blank
// lines and headings do not matter, and several sentences may share a line. First a sentence is put in plain words (plain.txt):
// synonyms, the active voice, a condition in one of few forms. Then it must be one of those in forms.go and actions.go, or be made
// of traits (retries.go, limits.go) in any order. No two may contradict each other: a sentence is never ignored
// and never guessed. Each of its words belongs to a pattern or to a slot whose reader understands it; a sentence with one that
// does not is refused.
//
// Parse returns the policy as a decoded document, which policy.Parse checks, and Print is its inverse. Whatever Parse
// refuses, it names the line, the text found there, and the nearest sentence that it knows.
package english
