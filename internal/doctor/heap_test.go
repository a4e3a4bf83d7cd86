package doctor

import "runtime"

// heap is how much of the heap is in use, dead objects included.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
