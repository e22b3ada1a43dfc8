package export

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// networkNote is the key of the note that has the network of a file, as JSON.
const networkNote = "disdel.network"

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
	err = WriteONNX(&rest{data}, g, in.Weights, nil)
	return in, err == nil
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
