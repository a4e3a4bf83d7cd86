package store

import (
	"testing"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

func TestACounterThatIsNoNumberStopsNobody(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.redis.HSet(t.Context(), b.Keys.Stats, "create", "many")
		record := &Record{Model: model.Model{UID: "m1", Policy: policy.Default()}}
		b.mustApply(b.save(record, "{}"))
	})
}
