// Package commands carries out commands about models at once, for the command line and the dashboard: it reads the models, lets package model
// decide, and commits. It does not go through the control list, and has no place in its order.
package commands
