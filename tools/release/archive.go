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

// pack makes a .tar.gz with the files in a folder.
func pack(folder string, files []file, at time.Time) ([]byte, error) {
	var list []tar.Header
	contents := map[string][]byte{}
	for _, f := range files {
		name := folder + "/" + f.name
		list = append(list, tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: f.mode, Size: int64(len(f.data))})
		contents[name] = f.data
	}
	return packHeaders(list, contents, at)
}

// packHeaders makes a .tar.gz of files and folders in this order. Owner, times and gzip's header are the same on every
// machine.
func packHeaders(list []tar.Header, contents map[string][]byte, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, h := range list {
		h.ModTime, h.Format = at, tar.FormatUSTAR
		if err := t.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := t.Write(contents[h.Name]); err != nil {
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
