package main

import (
	"fmt"
	"strconv"
)

// count is the pflag.Value of a number of things of which there must be at least one. Its default is told by the text of the flag: the
// variable holds 0 for it, which nobody can say by hand.
type count[T int | int64] struct {
	value *T
	wants string // the range, as in "1 to 1000"
}

func (c count[T]) Set(text string) error {
	number, err := strconv.ParseInt(text, 0, strconv.IntSize)
	if err != nil {
		return err
	}
	if number < 1 {
		return fmt.Errorf("expected %s, found %s", c.wants, text)
	}
	*c.value = T(number)
	return nil
}

// String is "0" for none, which the help text then leaves out as a default.
func (c count[T]) String() string {
	if c.value == nil {
		return "0"
	}
	return strconv.FormatInt(int64(*c.value), 10)
}

func (c count[T]) Type() string { return "int" }

// want is what a text is told that is no such number.
func (c count[T]) want(text string) string {
	if _, err := strconv.ParseInt(text, 0, strconv.IntSize); err == nil {
		return c.wants
	}
	return "a whole number"
}
