package rig

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Main runs a bench. If the bench fails, Main prints the error and ends the process with 1.
func Main(bench func() error) {
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// Part is some figures that belong together.
type Part struct {
	Name string
	Run  func() error
}

// Names are the names of parts with commas between them.
func Names(parts []Part) string {
	var out []string
	for _, p := range parts {
		out = append(out, p.Name)
	}
	return strings.Join(out, ",")
}

// RunParts runs the chosen parts in the order of parts; chosen are names with commas between them. It returns an error
// for a name that no part has. A part that fails does not keep the next ones from running. Standard error has the time
// that each part took.
func RunParts(parts []Part, chosen string) error {
	names := strings.FieldsFunc(chosen, func(r rune) bool { return r == ',' })
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p Part) bool { return p.Name == name }) {
			return fmt.Errorf("there is no part %q, only %s", name, Names(parts))
		}
	}
	var failed []error
	for _, p := range parts {
		if !slices.Contains(names, p.Name) {
			continue
		}
		begun := time.Now()
		if err := p.Run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.Name, err))
		}
		fmt.Fprintf(os.Stderr, "bench: %s took %.0f s\n", p.Name, time.Since(begun).Seconds())
	}
	return errors.Join(failed...)
}
