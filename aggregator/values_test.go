package aggregator

import (
	"context"
	"sync"
	"testing"
	"time"
)

// The columns of a state are written one after the other in one buffer, since a worker has no memory for more. Those of
// other values are written readDepth at a time.
func TestAStateIsWrittenInOneBuffer(t *testing.T) {
	s := enter(t, embedded(t), "buffers")
	s.column = 2
	for k, want := range map[kind]int{kindState: 1, kindReference: readDepth} {
		h, err := s.headOf(k, update(0, 1).ID, someWeights(1))
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		buffers, all := map[*byte]bool{}, make(chan struct{})
		limit, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		staged, err := s.stage(limit, h, func(dst []byte, _ []float32, _ int) []byte {
			mu.Lock()
			if buffers[&dst[:1][0]] = true; len(buffers) == want {
				select {
				case <-all:
				default:
					close(all)
				}
			}
			mu.Unlock()
			select { // so many are filled at the same time
			case <-all:
			case <-limit.Done():
			}
			return append(dst, 1, 2, 3, 4)
		})
		if err != nil || len(buffers) != want || staged.parts <= readDepth {
			t.Errorf("%v: %d buffers for %d columns, %v", k, len(buffers), staged.parts, err)
		}
	}
}
