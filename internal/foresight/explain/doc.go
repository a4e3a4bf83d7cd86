// Package explain tells of one model: what its state means, why it refreshes when it does, how its last attempts ended, and what follows if the
// next one succeeds, fails or is lost. It reads through package scripts, and renders facts to lines of text for the command line and the
// dashboard alike. Every line may hold texts from outside: whoever shows them makes them harmless there.
package explain
