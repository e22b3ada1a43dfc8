package platform

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// raw opens a connection and writes text.
func raw(t *testing.T, p *Platform, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(p.URL(), "http://"))
	if err == nil {
		_, err = io.WriteString(c, text)
	}
	if err != nil {
		t.Error(err)
	}
	return c
}

// Who has no key is answered and let go at once, whatever body he still promises, and on every path and by every
// method.
func TestABodyWithoutAKeyIsNotWaitedFor(t *testing.T) {
	p := start(t, nil)
	var all sync.WaitGroup
	for _, path := range everyPath(p) {
		for _, body := range []string{"Content-Length: 100000\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"} {
			if !strings.Contains(path, "namespaces") {
				continue // open: answered after ten seconds at most
			}
			all.Go(func() { refusedAtOnce(t, p, path, body) })
		}
	}
	all.Wait()
}

func refusedAtOnce(t *testing.T, p *Platform, path, body string) {
	c := raw(t, p, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+body)
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	if res.StatusCode != 401 || !res.Close {
		t.Errorf("%s: %d, the connection closed: %v", path, res.StatusCode, res.Close)
	}
	io.Copy(io.Discard, res.Body)
	if _, err := in.ReadByte(); err == nil || isTimeoutOf(err) {
		t.Errorf("%s: the connection stays: %v", path, err)
	}
}

func isTimeoutOf(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// deadlines notes what bounds a handler sets on reading.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Duration
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	left := time.Duration(0)
	if !at.IsZero() {
		left = time.Until(at)
	}
	d.set = append(d.set, left.Round(time.Second))
	return nil
}

// A body has the time that its size needs once a key was shown. Once it has been read there is no bound: a blocking
// invocation waits for its action, and the end of reading would pass for the client's going away.
func TestTheTimeOfABody(t *testing.T) {
	p := start(t, nil)
	user, key, _ := strings.Cut(p.AuthKey(), ":")
	for _, c := range []struct {
		method, body string
		known        bool
		want         []time.Duration
	}{
		{"GET", "", true, []time.Duration{headerWait, 0}},
		{"PUT", `{}`, true, []time.Duration{headerWait, time.Minute, 0}},
		{
			"PUT", `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, true,
			[]time.Duration{headerWait, time.Minute + 4*time.Second, 0},
		},
		{"PUT", `{}`, false, []time.Duration{headerWait, unauthBodyWait}},
	} {
		r := httptest.NewRequest(c.method, "http://localhost/api/v1/namespaces/_/packages/a?overwrite=true",
			strings.NewReader(c.body))
		if c.known {
			r.SetBasicAuth(user, key)
		}
		r.Header.Set("Content-Type", "application/json")
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		p.Handler().ServeHTTP(w, r)
		if fmt.Sprint(w.set) != fmt.Sprint(c.want) {
			t.Errorf("%s %.10s, with a key %v: %v, want %v", c.method, c.body, c.known, w.set, c.want)
		}
	}
}

// Connections without a key never fill the places of those with one.
func TestConnectionsWithoutAKeyAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const most = 4
	p := start(t, nil)
	l := limitUnauthenticated(inner, most, time.Millisecond)
	server := &http.Server{Handler: p.Handler(), ConnContext: withConn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	user, key, _ := strings.Cut(p.AuthKey(), ":")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	ask := func() {
		req, _ := http.NewRequest("GET", "http://"+inner.Addr().String()+"/api/v1/namespaces", nil)
		req.SetBasicAuth(user, key)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		if res.Body.Close(); res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
	}
	ask()
	var open []net.Conn
	for range 10 * most {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	closed := 0
	for _, c := range open[:9*most] {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == io.EOF || !isTimeoutOf(err) {
			closed++
		}
	}
	if closed != 9*most {
		t.Errorf("%d of %d were closed", closed, 9*most)
	}
	ask()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.byAge.Len(); n > most {
		t.Errorf("%d strangers, want %d at most", n, most)
	}
}

// A listener that is closed while it has no place ends.
func TestAFullListenerCanBeClosed(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limitUnauthenticated(inner, 1, time.Hour)
	failed := make(chan error, 1)
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				failed <- err
				return
			}
		}
	}()
	for range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	l.Close()
	if err := <-failed; err == nil {
		t.Error("no end")
	}
}
