package platform

import "sync"

// finder remembers actions as users reached them, so that an invocation of one that was invoked before reads nothing of
// the state. What it remembers holds for as long as nothing is changed: every change but an activation's record makes
// it forget.
type finder struct {
	mu    sync.Mutex
	as    uint64 // store.changes when it was true
	known map[way]*resolved
}

// way is how a user reaches an action.
type way struct {
	user string
	path pathName
}

// find finds an action that a user may invoke. It is not to be changed.
func (p *Platform) find(u *user, path pathName) (*resolved, error) {
	as, w := p.store.changes.Load(), way{u.Name, path} // before the state is looked at: it may change meanwhile
	if found := p.finder.recall(as, w); found != nil {
		return found, nil
	}
	var found *resolved
	err := p.store.view(func(t tx) (err error) {
		found, err = p.resolve(t, u, path)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.finder.learn(as, w, found)
	return found, nil
}

func (f *finder) recall(as uint64, w way) *resolved {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.as != as {
		return nil
	}
	return f.known[w]
}

func (f *finder) learn(as uint64, w way, found *resolved) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.as > as {
		return // somebody saw a newer state
	}
	if f.as < as || len(f.known) >= maxCached || f.known == nil {
		f.as, f.known = as, map[way]*resolved{}
	}
	f.known[w] = found
}
