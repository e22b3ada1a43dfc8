// Package addresses reads the addresses of OpenWhisk, Redis, CouchDB and buckets, and the passwords that the
// environment has for them. It also knows the place of a command: the flags that lead to where records are and where
// jobs run.
//
// It asks no server. Errors never contain a password. Besides the programs, only this package reads the environment,
// and sets it for the SDK of S3.
package addresses
