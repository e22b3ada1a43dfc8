package aggregator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// A check tells a server that works from one that is a replica or has another password, by its address and without its
// password.
func TestCheckTellsWhatAStoreLacks(t *testing.T) {
	address := plainRedis(t)
	s, err := Open(t.Context(), disdel.Store{URLs: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Check(t.Context(), "job-1"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hint     string
		do, undo []any
	}{
		{"it is a read-only replica", []any{"replicaof", "127.0.0.1", "1"}, []any{"replicaof", "no", "one"}},
		{
			"check the user and password",
			[]any{"acl", "setuser", "default", "-@all", "+acl"},
			[]any{"acl", "setuser", "default", "+@all"},
		},
	} {
		if err := s.client.Do(t.Context(), c.do...).Err(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		err := s.Check(ctx, "job-1")
		stop()
		var e *disdel.Error
		if !errors.As(err, &e) || e.Kind != disdel.Denied || !strings.Contains(e.Hint, c.hint) ||
			!strings.Contains(e.Msg, "Redis at 127.0.0.1:") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v", c.hint, e)
		}
		if err := s.client.Do(t.Context(), c.undo...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
