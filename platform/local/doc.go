// Package local is the process of `disdel platform up` on this machine, seen from both sides: what the one that
// serves tells in its home and answers, and how others find it, ask it, end it and learn its key. It also has the
// settings of the OpenWhisk that runs for the length of a service.
//
// It prints nothing and reads no flag. Invariant: a home has one platform at a time, and nothing is signalled but that
// one.
package local
