package simulation

import "github.com/refreshd/refreshd/scripts"

// lie is a planted bug: another script, or another store.
type lie struct {
	name    string
	file    string            // of the script
	replace map[string]string // what stands there once -> what is run instead
	store   func(*scripts.Store) queue
}

var lies []lie
