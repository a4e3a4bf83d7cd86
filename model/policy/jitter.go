package policy

import (
	"hash/fnv"
	"time"
)

// Vary moves a delay by up to share of itself, up or down: derived from the uid of the attempt, so that every decision can be
// computed again and explained. A zero delay stays zero. The result is whole milliseconds.
func Vary(delay time.Duration, share float64, attemptUID string) time.Duration {
	if delay <= 0 || share == 0 {
		return delay
	}
	by := share * (2*Fraction("jitter", attemptUID) - 1)
	return (delay + time.Duration(by*float64(delay))).Truncate(time.Millisecond)
}

// Fraction maps a text to a number from 0 up to but not including 1, evenly and always the same. The purpose keeps numbers for
// different uses of one text apart.
func Fraction(purpose, text string) float64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(purpose)) // a hash takes everything
	_, _ = hash.Write([]byte{0})
	_, _ = hash.Write([]byte(text))
	return float64(mix(hash.Sum64())>>11) / (1 << 53)
}

// mix spreads the differences of similar texts over all bits, which FNV alone does not (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
