package testkit

// Lines is a log whose lines can be received, for tests that wait until something has been logged. A line is dropped when
// nobody is ready to receive it and the channel is full.
type Lines chan string

// Write sends the line, if there is room.
func (l Lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}
