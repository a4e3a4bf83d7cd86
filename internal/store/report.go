package store

// Report is what people and programs read of a part: numbers, histories, journal and freshness. It changes nothing.
type Report struct{ *Store }

// Report reads what is told of the part.
func (s *Store) Report() Report { return Report{s} }

// QueueReport is Report of all parts of a queue.
type QueueReport struct{ *Queue }

// Report reads what is told of the queue.
func (q *Queue) Report() QueueReport { return QueueReport{q} }
