// Package apply makes what an owner has in a queue what a directory says: it plans first what to create, change and delete, and carries out
// what it has planned, and nothing else.
package apply
