package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
)

// cost bounds the memory of a request to a route, and how many requests of the kind a tenant may have at once.
type cost struct {
	name    string // of the kind, for messages
	base    int64  // bytes that a request takes without its body
	factor  int64  // bytes that it takes for each byte of its body
	maximum int    // requests of the kind that a tenant may have at once
	lasting bool   // a stream or a wait: it holds its place until the client or the job ends
	// computes tells that answering takes processor time. A tenant may have mostComputing such requests at once, of all
	// kinds together. It is false for requests that also wait for others: their handlers call compute where they compute.
	computes bool
	patience time.Duration // how long a request waits for room; 0: the budget's patience
}

// The kinds of requests. The figures are measured with the largest requests of each route and rounded up; make
// bench-tenants PARTS=attacks prints them. Of a kind that uses much processor time, a tenant may have about as many
// requests at once as there are processors, so that the requests of other tenants are not delayed.
var (
	processors = runtime.GOMAXPROCS(0)

	costLook   = cost{name: "look-ups", base: 1 << 20, maximum: 64}
	costRecord = cost{name: "records", base: 16 << 20, maximum: max(2, processors), computes: true}
	costList   = cost{name: "lists", base: 16 << 20, maximum: max(2, processors), computes: true}
	costSubmit = cost{name: "submissions", base: 2 << 20, factor: 64, maximum: 64}
	costWork   = cost{name: "estimates", base: 16 << 20, factor: 64, maximum: max(1, processors/2), computes: true}
	costInfer  = cost{name: "inferences", base: 4 << 20, factor: 12, maximum: max(4, processors)}
	costStream = cost{name: "streams", base: 128 << 10, maximum: 200, lasting: true}
	costSend   = cost{name: "downloads", base: 1 << 20, maximum: 8}
	costUpload = cost{name: "uploads", base: 32 << 20, maximum: 2}

	// costCompute is what a request takes besides, while it computes. A batch of submissions waits long for its turn.
	costCompute = cost{name: "computations", maximum: math.MaxInt, computes: true, patience: 30 * time.Second}

	mostComputing = max(2, processors)
)

// budget bounds the memory of the running requests: of each tenant, and of all tenants together. The operator has its
// own share.
type budget struct {
	share    int64 // bytes that the requests of one tenant may hold
	all      int64 // bytes that the requests of all tenants may hold together; the operator's are not among them
	operator *service.Service
	patience time.Duration // how long a request waits for room before it is refused

	mu      sync.Mutex
	held    int64                         // guarded by mu: bytes of all tenants
	tenants map[*service.Service]*holding // guarded by mu
	changed chan struct{}                 // guarded by mu: closed when something is given back
}

// holding is what the requests of one tenant hold.
type holding struct {
	bytes     int64
	kinds     map[string]int
	computing int // requests whose cost computes
	waiting   int
}

// How many requests of a tenant may wait for memory, and for how long.
const (
	mostWaiting  = 128
	waitsForRoom = 5 * time.Second
)

// tenantsAtOnce is the number of tenants that may use their whole share at the same time.
const tenantsAtOnce = 3

func newBudget(share int64, operator *service.Service) *budget {
	return &budget{
		share: share, all: tenantsAtOnce * share, operator: operator, patience: waitsForRoom,
		tenants: map[*service.Service]*holding{}, changed: make(chan struct{}),
	}
}

// bytes is the memory that a request with a body of so many bytes may take. A request without a body fits any share.
func (b *budget) bytes(c cost, body int64) int64 { return min(c.base, b.share) + c.factor*body }

// longest is the longest body, in bytes, of a request that still has room when nothing else runs.
func (b *budget) longest(c cost) int64 {
	if c.factor == 0 {
		return math.MaxInt64
	}
	return (b.share - min(c.base, b.share)) / c.factor
}

// hold reserves room for more bytes, for a request whose memory is only known from its body.
func (b *budget) hold(ctx context.Context, who *service.Service, bytes int64) (free func(), err error) {
	return b.take(ctx, who, cost{name: "additions", factor: 1, maximum: math.MaxInt}, bytes)
}

// full is the error of a request for which there is no memory. It says whose share is used up.
type full struct {
	why    *disdel.Error
	status int // of HTTP
}

func (f *full) Error() string { return f.why.Error() }

func (f *full) Unwrap() error { return f.why }

// retryAfter is the header Retry-After of such an answer.
const retryAfter = waitsForRoom

// take reserves room for a request, and waits for it if necessary. free gives the room back. take returns *full if
// there is no room in time.
func (b *budget) take(ctx context.Context, who *service.Service, c cost, body int64) (free func(), err error) {
	size := b.bytes(c, body)
	if err := b.overShare(size, "send less at once"); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.of(who)
	defer b.tidy(who, h)
	var timer *time.Timer
	for {
		why := b.lacks(who, h, c, size)
		if why == nil {
			break
		}
		if h.waiting >= mostWaiting || c.lasting {
			return nil, why
		}
		if timer == nil {
			timer = time.NewTimer(max(b.patience, c.patience))
			defer timer.Stop()
		}
		changed := b.changed
		h.waiting++
		b.mu.Unlock()
		over := false
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		b.mu.Lock()
		h.waiting--
		if over {
			return nil, why
		}
	}
	h.bytes += size
	h.kinds[c.name]++
	h.computing += counted(c)
	if who != b.operator {
		b.held += size
	}
	return sync.OnceFunc(func() { b.give(who, h, c, size) }), nil
}

func counted(c cost) int {
	if c.computes {
		return 1
	}
	return 0
}

// overShare returns OverLimit for a request that needs more memory than a tenant's whole share: waiting would not help.
// hint says what the tenant can do.
func (b *budget) overShare(bytes int64, hint string) error {
	if bytes <= b.share {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "make room", Hint: hint,
		Msg: fmt.Sprintf("the request needs %v of memory, and all requests of a tenant may have %v",
			disdel.Bytes(bytes), disdel.Bytes(b.share)),
	}
}

// lacks says why there is no memory for a request, nil if there is; the caller holds the lock.
func (b *budget) lacks(who *service.Service, h *holding, c cost, size int64) error {
	refuse := func(status int, msg string) error {
		return &full{&disdel.Error{
			Kind: disdel.Unavailable, Op: "make room", Msg: msg,
			Hint: "wait " + strconv.Itoa(int(retryAfter.Seconds())) + " s, or send fewer requests at once",
		}, status}
	}
	switch {
	case h.kinds[c.name] >= c.maximum:
		return refuse(http.StatusTooManyRequests, fmt.Sprintf("you have %d %s at once, and %d are the most",
			h.kinds[c.name], c.name, c.maximum))
	case c.computes && who != b.operator && h.computing >= mostComputing:
		return refuse(http.StatusTooManyRequests, fmt.Sprintf("you have %d requests that compute at once, and %d are the most",
			h.computing, mostComputing))
	case h.bytes+size > b.share:
		return refuse(http.StatusTooManyRequests, fmt.Sprintf("your requests hold %v, this one needs %v, and %v are the most",
			disdel.Bytes(h.bytes), disdel.Bytes(size), disdel.Bytes(b.share)))
	case who != b.operator && b.held+size > b.all:
		return refuse(http.StatusServiceUnavailable, "the requests of all tenants use up the memory of the server")
	default:
		return nil
	}
}

// of returns what a tenant holds; the caller holds the lock.
func (b *budget) of(who *service.Service) *holding {
	h := b.tenants[who]
	if h == nil {
		h = &holding{kinds: map[string]int{}}
		b.tenants[who] = h
	}
	return h
}

// tidy forgets a tenant that holds nothing and waits for nothing; the caller holds the lock.
func (b *budget) tidy(who *service.Service, h *holding) {
	if h.bytes == 0 && h.computing == 0 && h.waiting == 0 && b.tenants[who] == h {
		delete(b.tenants, who)
	}
}

func (b *budget) give(who *service.Service, h *holding, c cost, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.bytes -= size
	h.kinds[c.name]--
	h.computing -= counted(c)
	if who != b.operator {
		b.held -= size
	}
	close(b.changed)
	b.changed = make(chan struct{})
	b.tidy(who, h)
}
