// Package report explains a job from its record: its result, why it failed, what it cost, and which change lets it
// pass. It also compares jobs. New computes everything without I/O or a clock; Text, Markdown and HTML write it. The
// page is one file without scripts or other files: its style is inline and its plots are SVG.
//
// It reads records of any version and leaves out what a record does not have. No output contains control characters or
// markup from names, labels or log lines.
package report
