package simulation

import "fmt"

// flaw is a broken promise. It ends what looks for one.
type flaw struct{ error }

// fail tells of a broken promise.
func fail(format string, args ...any) { panic(flaw{fmt.Errorf(format, args...)}) }

// failIf tells of a promise that is broken when something is wrong.
func failIf(wrong bool, format string, args ...any) {
	if wrong {
		fail(format, args...)
	}
}

// must tells of what fails though nothing has been made to.
func must(err error) {
	if err != nil {
		panic(flaw{err})
	}
}

// only is the error of a call that returns something else too.
func only[T any](_ T, err error) error { return err }

// flawOf is the first broken promise that a look finds; nil: none is.
func flawOf(look func()) (broken error) {
	defer func() {
		switch found := recover().(type) {
		case nil:
		case flaw:
			broken = found.error
		default:
			panic(found)
		}
	}()
	look()
	return nil
}
