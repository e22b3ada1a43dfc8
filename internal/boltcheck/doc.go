// Package boltcheck protects data in a bbolt file. A value is stored with a checksum of its key and content. A file is
// checked before bbolt maps it into memory, because a missing page would end the process. A panic of bbolt becomes an
// error that names the file.
//
// It knows nothing about the stored data. Values of earlier versions have no checksum and are read as they are.
package boltcheck
