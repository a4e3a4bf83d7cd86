package store

// Fleet is what operators set for many models of a part: holds, limits, calendars, circuits and bulks, and the messages that were rejected.
type Fleet struct{ *Store }

// Fleet sets what holds for many models of the part.
func (s *Store) Fleet() Fleet { return Fleet{s} }

// QueueFleet is Fleet of all parts of a queue.
type QueueFleet struct{ *Queue }

// Fleet sets what holds for many models of the queue.
func (q *Queue) Fleet() QueueFleet { return QueueFleet{q} }
