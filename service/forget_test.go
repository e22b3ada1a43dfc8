package service

import (
	"errors"
	"testing"

	"github.com/disdel/disdel"
)

// Only a damaged record is deleted unread: that of a newer version may be of a job that runs.
func TestOnlyADamagedRecordIsDeletedUnread(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"damaged":         {&disdel.Error{Kind: disdel.Corrupt, Code: disdel.CodeUnreadable}, true},
		"another version": {&disdel.Error{Kind: disdel.Conflict, Code: disdel.CodeUnreadable}, false},
		"another failure": {errors.New("no"), false},
		"none":            {nil, false},
	} {
		if got := damaged(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
