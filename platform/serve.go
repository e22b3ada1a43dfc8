package platform

import (
	"net"
	"net/http"
	"time"
)

// Serve answers on l with h, which is Handler or something around it, until Close. It must be called once, before anything
// is invoked: containers are told its address.
func (p *Platform) Serve(l net.Listener, h http.Handler) {
	p.listener, p.served = l, make(chan struct{})
	p.pool.open()
	p.server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(p.served)
		p.server.Serve(l) //nolint:errcheck // ends with ErrServerClosed
	}()
}
