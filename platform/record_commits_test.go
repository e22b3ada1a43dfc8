package platform

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
)

// Activations that end together are all kept when file returns, and one that cannot be written takes no other with it.
func TestActivationsThatEndTogether(t *testing.T) {
	s, err := openStore(t.TempDir(), true, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	const bad = 7
	var all sync.WaitGroup
	for i := range 50 {
		result := json.RawMessage(`{}`)
		if i == bad {
			result = json.RawMessage(`{`)
		}
		all.Go(func() {
			id := fmt.Sprintf("%032x", i)
			err := s.saveRecord(&activation{
				Namespace: "guest", ActivationID: id, Start: int64(i), Response: response{Result: result},
			})
			var kept bool
			s.view(func(x tx) error {
				kept = x.bucket(records).Get([]byte("guest\x00"+id)) != nil
				return nil
			})
			if kept != (i != bad) || (err == nil) != kept {
				t.Errorf("%d: kept %v, %v", i, kept, err)
			}
		})
	}
	all.Wait()
	s.view(func(x tx) error {
		if n := x.count("guest"); n != 49 {
			t.Errorf("%d are counted, want 49", n)
		}
		return nil
	})
}
