// Package local is the process of `disdel platform up` on this machine: how it serves and publishes its state, and how
// other processes find it, ask it, end it and learn its key. It also configures the OpenWhisk that runs as long as a
// service.
//
// It prints nothing and reads no flag. Invariant: a home has one platform at a time, and signals go to no other
// process.
package local
