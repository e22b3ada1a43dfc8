package service

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// digits is the data set that this program carries.
const digits = "digits"

// downloadTimeout bounds one file of a public data set.
const downloadTimeout = 10 * time.Minute

// AddDigits adds the data set that this program carries, if it is not there: 1,797 handwritten digits, named digits.
func (s *Service) AddDigits(ctx context.Context) error {
	_, err := s.AddKnown(ctx, digits, true)
	return err
}

// AddKnown adds a public data set by its name: its files come from an installed package, else from their public
// address, and are checked against pinned checksums. It returns Invalid for a name that is not known, Conflict where
// there is another data set of the name that is not to be replaced, and Unavailable where the files are nowhere to be
// had.
func (s *Service) AddKnown(ctx context.Context, name string, overwrite bool) (m dataset.Manifest, err error) {
	store, err := s.Datasets(ctx)
	if err != nil {
		return m, err
	}
	in, err := known(ctx, name)
	if err != nil {
		return m, err
	}
	release, err := s.ClaimDisk(ctx, InputBytes(&in))
	if err != nil {
		return m, err
	}
	defer release()
	return store.Add(ctx, in, overwrite)
}

func known(ctx context.Context, name string) (dataset.Input, error) {
	if name == digits {
		in, err := dataset.Digits()
		in.Name = name
		return in, err
	}
	r, ok := dataset.FindRecipe(name)
	if !ok {
		return dataset.Input{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "add data set", Msg: fmt.Sprintf("no data set is known as %q", name),
			Hint: "known: " + strings.Join(dataset.Known(), ", ") + "; or name files: --images FILE --labels FILE",
		}
	}
	return r.Fetch(ctx, &http.Client{Timeout: downloadTimeout})
}
