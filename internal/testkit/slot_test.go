package testkit

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit/long"
)

// TestAMovedSlotServesEveryKeyThatIsWrittenMeanwhile is also about what the drills with a killed master rely on: each write that is told to have
// succeeded is there, at one node alone.
func TestAMovedSlotServesEveryKeyThatIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	for name, lend := range map[string]func(testing.TB) *Server{"masters": Cluster, "with replicas": ReplicatedCluster} {
		t.Run(name, func(t *testing.T) {
			if name == "with replicas" {
				long.Only(t)
			}
			s := lend(t)
			source, _ := s.master(t, keySlot(t, s, "{a}"))
			options := s.Options().Cluster()
			options.MaxRedirects = 10
			client := redis.NewClusterClient(options)
			defer func() { _ = client.Close() }()
			want, moved, first := map[string]Value{}, make(chan struct{}), make(chan struct{})
			go func() {
				defer close(moved)
				<-first
				s.MoveSlot(t, "{a}")
			}()
			for i, ended := 0, false; !ended; i++ { // until a little after the move
				select {
				case <-moved:
					ended = true
				default:
				}
				key := fmt.Sprint("{a}", i)
				err := client.Set(t.Context(), key, i, 0).Err()
				stopIf(t, err != nil, "write key %d: %v", i, err)
				want[key] = Value{Type: "string", Data: fmt.Sprint(i)}
				if i == 300 {
					close(first)
				}
			}
			target, _ := s.master(t, keySlot(t, s, "{a}"))
			failIf(t, target == source, "the slot is still at %s", source)
			diff := cmp.Diff(want, s.Dump(t))
			failIf(t, diff != "", "keys (-want +got):\n%s", diff)
		})
	}
}
