package sparse

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// HeldOut says which rows of a data set are held out of learning when it is added. Without a share none is: then each
// job draws its own, as data.split says.
type HeldOut struct {
	Share float64 // of the rows, from 0 to below 1
	// ByUser holds out that share of each user's ratings, and never a user's only one: every user who is evaluated has
	// been learned of. Else it is rows, whosever they are.
	ByUser bool
	Seed   int64
}

func (h HeldOut) check() error {
	if h.Share >= 0 && h.Share < 1 {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "divide data set", Msg: fmt.Sprintf("a share of %g held out", h.Share),
		Hint: "give a share from 0 to below 1, such as 0.1",
	}
}

// picker says of rows, in their order, whether they are held out.
type picker struct {
	HeldOut
	row  int
	seen []int // by user: rows so far
}

func (h HeldOut) picker(users int) *picker {
	p := &picker{HeldOut: h}
	if h.ByUser {
		p.seen = make([]int, users)
	}
	return p
}

// next is about the next row, which is that of a user where it is a rating.
func (p *picker) next(user int) bool {
	p.row++
	switch {
	case p.Share <= 0:
		return false
	case !p.ByUser:
		return chance(p.Seed, uint64(p.row)) < p.Share
	}
	// Every 1/share-th of a user's rows, from a place on that is the user's own.
	k := float64(p.seen[user])
	p.seen[user]++
	if k == 0 {
		return false
	}
	phase := chance(p.Seed, uint64(user))
	return math.Floor(k*p.Share+phase) > math.Floor((k-1)*p.Share+phase)
}

// chance is a number from 0 to below 1 that goes by a seed and a number (splitmix64; Steele, Lea and Flood 2014).
func chance(seed int64, n uint64) float64 {
	const golden = 0x9e3779b97f4a7c15
	z := uint64(seed)*golden + (n+1)*0xbf58476d1ce4e5b9
	for range 2 {
		z += golden
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return float64(z>>11) / (1 << 53)
}
