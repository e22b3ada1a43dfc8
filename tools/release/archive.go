package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"time"
)

// file is a file of an archive.
type file struct {
	name string
	data []byte
	mode int64
}

// pack makes a .tar.gz with the files in a folder. Owner, times and gzip's header are the same on every machine.
func pack(folder string, files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		err := t.WriteHeader(&tar.Header{
			Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR,
		})
		if err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
