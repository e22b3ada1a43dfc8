package render

import (
	"fmt"
	"unicode/utf8"

	"github.com/disdel/disdel/internal/terminal"
)

// picture is lines on a terminal that the next ones replace.
type picture struct {
	ui    *terminal.UI
	shown []int // widths of the lines
}

// show draws as many lines as the terminal has room for, none wider than it is: one that wrapped could not be taken
// back. The picture before has to be erased.
func (p *picture) show(lines []string) {
	columns, rows := p.ui.Size()
	room := len(lines)
	if rows > 0 {
		room = min(room, max(1, rows-2))
	}
	for i, line := range lines[:room] {
		if left := len(lines) - room; left > 0 && i == room-1 {
			line = fmt.Sprintf("  and %d more", left+1)
		}
		line = terminal.Cut(line, columns)
		fmt.Fprintln(p.ui.Err, line)
		p.shown = append(p.shown, utf8.RuneCountInString(line))
	}
}

// erase takes back the lines of the last picture. A terminal that has become narrower since has wrapped them.
func (p *picture) erase() {
	rows, columns := 0, 0
	if len(p.shown) > 0 {
		columns, _ = p.ui.Size()
	}
	for _, width := range p.shown {
		rows++
		if columns > 0 && width > columns {
			rows += (width - 1) / columns
		}
	}
	if rows > 0 {
		fmt.Fprintf(p.ui.Err, "\x1b[%dA\x1b[J", rows)
	}
	p.shown = p.shown[:0]
}
