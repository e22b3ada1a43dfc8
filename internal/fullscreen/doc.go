// Package fullscreen shows jobs on the whole terminal while they run: a list, and one job with its curves, actions and
// log. What the screen shows and what keys do has no I/O; only Watch uses time, terminals and services.
package fullscreen
