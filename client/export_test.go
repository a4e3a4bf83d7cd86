package client

// New makes a client of an opened queue, whose connections a test may disturb.
var New = newClient
