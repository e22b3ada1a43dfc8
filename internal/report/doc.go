// Package report explains one job from its record: what came of it, why it failed, what it cost, and which change will
// let it pass. New works everything out without I/O or a clock; Text, Markdown and HTML write it. The page is one file
// that asks for nothing else: its style is inline, its plots are SVG, and it has no script.
//
// Records of any age can be read: what a record does not have is left out, never made up. Names, labels and log lines
// come from outside; no writer lets a control character or markup of theirs through. The command line calls it.
package report
