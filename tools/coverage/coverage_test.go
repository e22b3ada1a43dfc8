package main

import (
	"slices"
	"testing"
)

const program = `package p

import "errors"

func f(n int) error {
	if err := g(); err != nil {
		return err
	}
	if n > 1 {
		return errors.New("too many")
	}
	if n == 0 {
		n = 1
	}
	switch err := g(); {
	case n < 0:
		return &Error{}
	case err != nil && n > 5:
		n--
	case err == nil:
		n++
	}
	return nil
}
`

// A path of an error is what runs only where something failed; other branches are none.
func TestPathsOfErrorsAreFound(t *testing.T) {
	found, err := errorPaths("p.go", []byte(program))
	want := []place{{7, 3}, {10, 3}, {17, 3}, {19, 3}}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
}

// A block of the profile counts where its count is above 0, from its start to before its end.
func TestAProfileTellsWhatRan(t *testing.T) {
	b, err := parse("mode: set\nx/p.go:6.31,8.3 1 1\nx/p.go:9.11,11.3 1 0\n")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[place]bool{{7, 3}: true, {6, 30}: false, {8, 3}: false, {10, 3}: false} {
		if b.runs("x/p.go", at) != want {
			t.Errorf("%v ran: %v, want %v", at, !want, want)
		}
	}
	if _, err := parse("nonsense\n"); err == nil {
		t.Error("a line that is none was read")
	}
}
