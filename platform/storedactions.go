package platform

import "github.com/disdel/disdel/internal/boltcheck"

// storedAction is an action without its code, and a number that no other state of any action has.
type storedAction struct {
	Action   *action `json:"action"`
	Revision uint64  `json:"revision"`
}

func (t tx) putAction(a *action) error {
	revision, err := t.of(actions).NextSequence()
	if err != nil {
		return err
	}
	bare := *a
	bare.Exec.Code = ""
	if err := put(t, actions, a.path(), storedAction{&bare, revision}); err != nil {
		return err
	}
	return t.seal(codes, []byte(a.path()), []byte(a.Exec.Code))
}

func (t tx) dropAction(key string) error {
	if err := t.drop(actions, key); err != nil {
		return err
	}
	return t.drop(codes, key)
}

// maxCached bounds the actions whose code stays in memory.
const maxCached = 64

// whole reads an action with its code; nil where there is none. Activations of one state of an action share one value,
// so that a warm container's is the same, and not 48 MB to compare.
func (s *store) whole(t tx, key string) (*action, error) {
	v, err := get[storedAction](t, actions, key)
	if v == nil || err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if hit := s.cache[key]; hit != nil && hit.Revision == v.Revision {
		return hit.Action, nil
	}
	code, _, err := boltcheck.Open([]byte(key), t.of(codes).Get([]byte(key)))
	if err != nil {
		return nil, err
	}
	v.Action.Exec.Code = string(code)
	if len(s.cache) >= maxCached {
		clear(s.cache)
	}
	s.cache[key] = v
	return v.Action, nil
}
