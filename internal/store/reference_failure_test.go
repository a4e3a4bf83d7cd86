package store

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sort notes by which signature the model of a transition fails from now on, or that it fails no more.
func (r *reference) sort(t *Transition, now time.Time) {
	was, is := r.models[t.uid]["error"], t.decision.Next.FingerprintID
	fails := t.decision.Fingerprint != ""
	if !fails && is != "" && !t.removes() {
		return
	}
	if t.removes() {
		is = ""
	}
	if was != "" && was != is {
		r.leave(was, now)
	}
	if !fails {
		return
	}
	known := r.signature[is]
	if known = maps.Clone(known); known == nil {
		known = hash{"first_at": stamp(now)}
	}
	ended := t.decision.Ended
	maps.Copy(known, hash{"signature": string(t.decision.Fingerprint), "reason": ended.Reason, "error_type": ended.ErrorType, "uid": t.uid, "last_at": stamp(now)})
	add(known, "failures")
	if r.signature[is] = known; was != is {
		r.join(is, t.uid, now)
	}
}

func (r *reference) join(id, uid string, now time.Time) {
	known := r.signature[id]
	uids := append(list{uid}, slices.DeleteFunc(strings.Fields(known["uids"]), func(other string) bool { return other == uid })...)
	known["uids"] = strings.Join(uids[:min(len(uids), 3)], " ")
	add(known, "began")
	delete(r.pastErrors, id)
	if r.errors[id]++; r.errors[id] != 2 { // one may fail untold
		return
	}
	told, err := strconv.ParseInt(known["told_ms"], 10, 64)
	if err != nil || now.Sub(time.UnixMilli(told)) >= 24*time.Hour {
		known["told_ms"] = strconv.FormatInt(now.UnixMilli(), 10)
		r.incidents = append(r.incidents, map[string]any{
			"event": "new_error", "at": stamp(now), "error": id, "signature": known["signature"], "models": "2", "reason": known["reason"],
		})
	}
}

func (r *reference) leave(id string, now time.Time) {
	r.signature[id] = maps.Clone(r.signature[id])
	add(r.signature[id], "ended")
	if r.errors[id]--; r.errors[id] > 0 {
		return
	}
	delete(r.errors, id)
	maps.DeleteFunc(r.pastErrors, func(_ string, at float64) bool { return at <= dayBefore(now) })
	setScore(r.pastErrors, id, now)
}

func add(counts hash, name string) {
	n, _ := strconv.Atoi(counts[name])
	counts[name] = strconv.Itoa(n + 1)
}
