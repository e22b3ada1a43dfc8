package platform

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// Bounds on the time that a connection may take. There is none on a whole request: a blocking one waits for its action.
const (
	headerWait = 10 * time.Second
	idleWait   = 2 * time.Minute
	// strangerWait is the time for the body of a request that showed no valid key.
	strangerWait = time.Second
)

// bodyWait is the time for the body of a request with a key: a minute, and what it takes at 256 KB a second.
func bodyWait(length int64) time.Duration {
	const slowest = 256 << 10
	return time.Minute + time.Duration(max(0, length)/slowest)*time.Second
}

// Serve answers on l with h, which is Handler or something around it, until Close. It must be called once, before
// anything is invoked: containers are told its address.
func (p *Platform) Serve(l net.Listener, h http.Handler) {
	p.listener, p.served = l, make(chan struct{})
	p.pool.open()
	p.server = &http.Server{
		Handler: p.gate(h), ReadHeaderTimeout: headerWait, IdleTimeout: idleWait, ConnContext: withStranger,
	}
	go func() {
		defer close(p.served)
		p.server.Serve(newStrangers(l, maxStrangers, strangerMinAge)) //nolint:errcheck // ends with ErrServerClosed
	}()
}

func withStranger(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, strangerKey{}, c)
}

// patience bounds the time that a request's body may take: little before its sender showed a key, then enough for what
// it announced, and once it has been read, any, as the answer may take its time.
type patience struct {
	w http.ResponseWriter
	r *http.Request
}

// limit ends reading after d, 0 for never.
func (t patience) limit(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	http.NewResponseController(t.w).SetReadDeadline(at) //nolint:errcheck // a recorder of tests has no deadlines
}

// known is called after a good key. The request that it returns is read by its bounds.
func known(w http.ResponseWriter, r *http.Request) *http.Request {
	t := patience{w, r}
	if s, ok := t.r.Context().Value(strangerKey{}).(*stranger); ok {
		s.known()
	}
	if t.r.ContentLength == 0 {
		t.limit(0)
	} else {
		t.limit(bodyWait(t.r.ContentLength))
	}
	timed := *r // a copy: the server looks at its own request's body
	timed.Body = &timedBody{ReadCloser: r.Body, patience: t, all: t.r.ContentLength == 0}
	return &timed
}

// refuse is called before the answer to who showed no key: what he still sends is not waited for.
func (t patience) refuse() {
	t.w.Header().Set("Connection", "close")
	t.limit(strangerWait)
}

// timedBody takes the bound away when all has been read: an end of reading would pass for the client's going away.
type timedBody struct {
	io.ReadCloser
	patience patience
	all      bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.all {
		b.all = true
		b.patience.limit(0)
	}
	return n, err
}
