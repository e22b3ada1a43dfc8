package platform

import (
	"path/filepath"
	"strconv"
	"sync"
)

// ahead is the group that the next container will start in, with the thread in it that starts containers. It is made
// after a start, while nobody waits: the first thread that is moved in a while makes the kernel wait until every
// processor has passed a quiet state, some 15 ms, which would be half of a container's start.
//
// Its name is none of a container's, whose groups' processes are killed when a platform ends: this process is in it.
type ahead struct {
	mu   sync.Mutex
	free string // the group's name, "" where it was taken

	inside string // the name, as it was made, of where the thread is: known to the spawner's orders alone
}

const aheadPrefix = "next-"

// take hands the group out, by the name that it was made with; "" where there is none, as before the first start.
func (a *ahead) take() string {
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := a.free
	a.free = ""
	return name
}

// enter moves the thread into a container's group, unless it has waited there.
func (a *ahead) enter(f group, thread int) {
	if f.was == "" || a.inside != f.was {
		f.write("tasks", strconv.Itoa(thread))
	}
	a.inside = ""
}

// next moves the thread on: a container's memory and end shall not be those of the process that it belongs to.
func (a *ahead) next(g groups, thread int) {
	name := a.take() // made for a start that has not come: the thread went to another's
	if name == "" {
		name = aheadPrefix + newID()[:8]
		if g.make(name) == nil {
			name = ""
		}
	}
	for _, base := range g.bases {
		writeTo(filepath.Join(base, name, "tasks"), strconv.Itoa(thread))
	}
	a.inside = name
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = name
}
