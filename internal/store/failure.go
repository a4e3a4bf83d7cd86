package store

import (
	"strconv"

	"github.com/refreshd/refreshd/model"
)

// fails reports whether the model fails by a signature from now on, once more or by another one, or by none any more. Of most transitions
// neither is so.
func (t *Transition) fails() (by, ends bool) {
	was, is := t.was.errorID, t.decision.Next.ErrorID
	if t.removes() {
		is = ""
	}
	return is != "" && (is != was || t.decision.Signature != ""), is == "" && was != ""
}

// failure tells by which signature the model fails, or that it fails no more.
func (f *fleet) failure(t *Transition, fails bool, untold int) {
	is := t.decision.Next.ErrorID
	if fails {
		reason, errorType := "", ""
		if ended := t.decision.Ended; ended != nil {
			reason, errorType = ended.Reason, ended.ErrorType
		}
		f.list("error", []string{is, strconv.Itoa(untold), string(t.decision.Signature), reason, errorType})
	} else {
		f.say("sound", "")
	}
	f.wording.keys = append(f.wording.keys, f.keys.Error(t.was.errorID), f.keys.Error(is), f.keys.Error(model.ErrorOther))
}
