// Package documents runs what the documents print: every command block of README.md and docs, and every line of docs/redis-cli.md.
package documents
