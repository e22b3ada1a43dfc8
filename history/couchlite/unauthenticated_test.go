package couchlite

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Who has no password is answered and let go at once, whatever body he still promises.
func TestABodyWithoutAPasswordIsNotWaitedFor(t *testing.T) {
	s := open(t)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second)) // far below the time of a whole request
	io.WriteString(c, "POST /db HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 401 || !res.Close {
		t.Fatalf("%v, %v", res, err)
	}
	io.Copy(io.Discard, res.Body)
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the connection stays: %v", err)
	}
	if s.server.IdleTimeout == 0 || s.server.ReadTimeout == 0 {
		t.Error("connections may be held for ever")
	}
}
