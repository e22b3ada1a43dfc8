// Package boltcheck keeps what is stored in a bbolt file from being read wrong. A value is sealed with a checksum of its
// key and itself; a file is checked before it is mapped into memory, where a page that is missing would end the
// process; and what the file's damage makes bbolt panic with becomes an error that names the file.
//
// It knows nothing of what is stored. Values that were stored without a checksum, by versions before it, are read as
// they are.
package boltcheck
