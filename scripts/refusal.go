package scripts

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Refused reports whether Redis answered that this user may not do it, or not within a script.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "NOPERM") || strings.Contains(text, "user executing the script") || strings.Contains(text, "ACL failure in script")
}

// Answered reports whether an error is an answer of Redis, not the lack of one.
func Answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
