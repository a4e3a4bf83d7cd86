// Package document reads what people and programs write: objects of JSON and YAML, durations, uids, texts. What it refuses it
// refuses with an Error, which says where, what was expected and what was found.
package document
