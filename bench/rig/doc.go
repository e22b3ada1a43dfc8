// Package rig has what the benches share: figures and their medians, the built program with a home of its own, a
// platform, a redis-server, and the parts that a person chooses.
package rig
