// Package people holds what one person does with refreshd from beginning to end, as tests: a newcomer with a table of their own, and an operator
// whose fleet loses a host. They use what people use: the programs, a browser, redis-cli, mail.
package people
