package lease

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
)

// A session is renewed, and looks at the leases, until the life of its Service ends. Then it does so no more, even if
// nobody closes it.
func TestASessionEndsWithItsLife(t *testing.T) {
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	h, err := history.Open(t.Context(), history.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	life, end := context.WithCancel(t.Context())
	defer end()
	begun, over := context.WithCancel(t.Context())
	looked := make(chan struct{}, 1000)
	s, err := Begin(begun, life, Config{
		Home: t.TempDir(), History: h, Token: "mine", Time: 20 * time.Millisecond, Log: logrus.New(),
		Look: func(context.Context, []history.Lease) error {
			select {
			case looked <- struct{}{}:
			default:
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	over() // the context of the beginning does not end the session
	<-looked
	<-looked
	end()
	s.done.Wait()
	if alive, known, err := SessionAlive(t.Context(), h, "mine", time.Now().Add(2*Patience)); alive || !known || err != nil {
		t.Errorf("alive %v, known %v, %v: the note stays until Close and expires", alive, known, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, known, err := SessionAlive(t.Context(), h, "mine", time.Now()); known || err != nil {
		t.Errorf("known %v, %v after Close", known, err)
	}
}
