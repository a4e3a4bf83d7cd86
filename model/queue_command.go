package model

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// The command types that are about the queue as a whole. They need no model.
const (
	CommandHold    CommandType = "hold"
	CommandRelease CommandType = "release"
	CommandRequeue CommandType = "requeue"
)

// OfQueue reports whether a command is about the queue, and about no state of a model.
func (t CommandType) OfQueue() bool {
	return t == CommandHold || t == CommandRelease || t == CommandRequeue
}

func (c *Command) readHold(doc document.Object) error {
	doc, err := document.ReadObject(doc.Fields, "id", "selector", "reason", "until", "for", "within")
	if err != nil {
		return err
	}
	var selector, until string
	err = cmp.Or(into(&c.Hold.ID, doc.Text, "id"), into(&selector, doc.Text, "selector"), into(&c.Hold.Reason, doc.Text, "reason"),
		into(&until, doc.Text, "until"), readLength(&c.Hold.Within, doc, "within"), readLength(&c.For, doc, "for"))
	switch {
	case err != nil:
		return err
	case c.Hold.Reason == "":
		return document.Refuse("reason", "why, for whoever wonders", "nothing")
	case c.For < 0 || doc.Fields["for"] != nil && c.For == 0:
		return document.Refuse("for", "a length of time such as 2h", document.FormatDuration(c.For))
	case until != "" && c.For != 0:
		return document.Refuse("until", "it or for", "both")
	case until != "":
		if c.Hold.Until, err = time.Parse(time.RFC3339, until); err != nil {
			return document.Refuse("until", "an RFC 3339 time", document.Found(until))
		}
		c.Hold.Until = c.Hold.Until.UTC().Truncate(time.Millisecond)
	}
	if c.Hold.Selector, err = ParseSelector(selector); err != nil {
		return err
	}
	return document.ValidateID("id", c.Hold.ID)
}

// HoldAt is the hold that the command begins at now.
func (c *Command) HoldAt(now time.Time) Hold {
	hold := c.Hold
	hold.Since, hold.By = now, c.By
	if c.For > 0 {
		hold.Until = now.Add(c.For)
	}
	return hold
}

func readLength(place *time.Duration, doc document.Object, name string) (err error) {
	*place, err = doc.Length(name, 0)
	return err
}
