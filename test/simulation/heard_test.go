package simulation

import "time"

// grace is for how long nothing expires after an outage, in the worlds that have one.
const grace = 15 * time.Second
