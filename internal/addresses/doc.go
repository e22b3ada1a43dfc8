// Package addresses reads what a user says of servers: addresses of OpenWhisk, Redis, CouchDB and buckets, and the
// passwords for them, which no flag takes and the environment gives.
//
// It asks no server anything. Errors never have a password in them. Beside the programs it is the one room that reads,
// and for the SDK of S3 sets, the environment: whoever configures a service from Go has no need of it.
package addresses
