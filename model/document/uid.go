package document

import "regexp"

var uidPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@/+=~-]{0,199}$`)

// IsUID reports whether a text could be the uid of a model. Names of policies have the same form.
func IsUID(text string) bool { return uidPattern.MatchString(text) }

// ValidateUID accepts the uid of a model: 1-200 letters, digits and _.:@/+=~- , beginning with a letter or digit, so that
// it can stand in a Redis key, a command line and a log without being anything else.
func ValidateUID(uid string) error {
	if IsUID(uid) {
		return nil
	}
	return &Error{"uid", "1-200 letters, digits or _.:@/+=~- (first a letter or digit)", Found(uid)}
}
