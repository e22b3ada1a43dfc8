package main

import (
	"strings"
	"testing"
)

func TestFiguresAreReadAndPutBesideTheirClaims(t *testing.T) {
	got := read("# a comment\nfigure fig8_time_default 0.61 x\nfigure short\nother fig12_default 3 x\n")
	if len(got) != 1 || got["fig8_time_default"] != "0.61 x" {
		t.Fatalf("%v", got)
	}
	text := page(map[string]map[string]string{"paper": got})
	if !strings.Contains(text, "| `fig8_time_default` 0.61 x |") || !strings.Contains(text, "| `fig12_default` - |") {
		t.Error(text)
	}
	for _, h := range headlines {
		if h.command != "" && benches[h.command] == nil {
			t.Errorf("%s: nobody measures %v", h.system, h.figures)
		}
	}
}
