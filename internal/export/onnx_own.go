package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// networkNote is the key of the note that has the network of a file, as JSON. checksumNote is the key of the length and
// the SHA-256 of the file without notes.
const networkNote, checksumNote = "disdel.network", "disdel.checksum"

// ownNotes are the notes of a file by which ownNetwork knows it.
func ownNotes(n disdel.Network, file *message) (map[string]string, error) {
	layers, err := json.Marshal(ownPart(n))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if err := file.write(sum); err != nil {
		return nil, err
	}
	checksum := fmt.Sprintf("%d %x", file.size(), sum.Sum(nil))
	return map[string]string{networkNote: string(layers), checksumNote: checksum}, nil
}

// ownNetwork is the network of a file that ConvertONNX wrote, with all its layers. ok is false for other files, and for
// those whose graph was changed since: a note does not follow such a change.
func ownNetwork(data []byte, s *source) (in Imported, ok bool) {
	var n disdel.Network
	if len(s.network) == 0 || json.Unmarshal(s.network, &n) != nil {
		return Imported{}, false
	}
	in.Network = ownPart(n)
	g, err := model.Build(in.Network)
	if err != nil {
		return Imported{}, false
	}
	for _, p := range g.Params() {
		list := s.arrays[p.Name].floats32()
		if len(list) != p.Len() {
			return Imported{}, false
		}
		in.Weights = append(in.Weights, disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: list})
	}
	return in, s.unchanged(data) || WriteONNX(&rest{data}, g, in.Weights, nil) == nil
}

// unchanged tells whether a file is as its writer left it, which may have written nodes in another way than this one.
func (s *source) unchanged(data []byte) bool {
	var n int
	var sum []byte
	if _, err := fmt.Sscanf(s.checksum, "%d %x", &n, &sum); err != nil || n < 0 || n > len(data) {
		return false
	}
	own := sha256.Sum256(data[:n])
	return bytes.Equal(sum, own[:])
}

// ownPart is what a network computes, without where its weights and its rows came from.
func ownPart(n disdel.Network) disdel.Network {
	return disdel.Network{Name: n.Name, Layers: n.Layers, Input: n.Input, Classes: n.Classes, NextToken: n.NextToken}
}

// rest are bytes that are still to come. To write others is an error.
type rest struct{ data []byte }

var errOther = errors.New("the bytes are others")

func (r *rest) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(r.data, p) {
		return 0, errOther
	}
	r.data = r.data[len(p):]
	return len(p), nil
}
