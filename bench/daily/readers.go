package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/history"
)

// crowd is how many read what happens to the jobs.
const crowd = 200

// readers has a crowd look at the list of jobs, and measures what the server takes for it.
func readers(ctx context.Context, t *tools) (err error) {
	changing := record(500, 3)
	s, err := serve(ctx, t, func(records *history.Store) error {
		for i := range 100 {
			if err := records.Save(ctx, record(i, 10)); err != nil {
				return err
			}
		}
		return records.Save(ctx, changing)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	cookie, err := s.signIn(ctx)
	if err != nil {
		return err
	}
	told := make(chan string, 10*crowd)
	one, err := s.read(ctx, cookie, told) // what the first takes, the others share
	if err != nil {
		return err
	}
	defer one.Body.Close()
	before, err := s.residentMB()
	if err != nil {
		return err
	}
	for range crowd - 1 {
		res, err := s.read(ctx, cookie, told)
		if err != nil {
			return err
		}
		defer res.Body.Close()
	}
	for range 10 {
		changing.Rounds = append(changing.Rounds, changing.Rounds[0])
		if err := s.records.Save(ctx, changing); err != nil {
			return err
		}
		if err := all(told, crowd); err != nil {
			return err
		}
	}
	after, err := s.residentMB()
	rig.Figure("sse_readers", crowd, "readers")
	rig.Figure("sse_rss_mb", after-before, "MB")
	return err
}

// read reads what happens in a goroutine that ends with the answer's body.
func (s *server) read(ctx context.Context, cookie *http.Cookie, told chan<- string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/ui/live/jobs", nil)
	if err != nil {
		return nil, err
	}
	r.AddCookie(cookie)
	res, err := apart().RoundTrip(r)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.Join(errors.New("reading: "+res.Status), res.Body.Close())
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && lines.Text() != ": here" { // from here on it is told everything
	}
	go func() {
		for lines.Scan() {
			if lines.Text() == "event: changed" {
				told <- "changed"
			}
		}
	}()
	return res, nil
}

// apart is a transport whose connections are many.
var apart = sync.OnceValue(func() *http.Transport {
	return &http.Transport{MaxIdleConns: crowd, MaxIdleConnsPerHost: crowd}
})

// all waits until so many were told.
func all(told <-chan string, want int) error {
	late := time.After(time.Minute)
	for got := range want {
		select {
		case <-told:
		case <-late:
			return fmt.Errorf("%d of %d readers were told", got, want)
		}
	}
	return nil
}
