package disdel

import (
	"fmt"
	"math"
)

// The losses of models of sparse rows, whose targets are numbers.
const (
	LossSquared  = "squared"  // of a prediction less its target; the mean over rows is the mean squared error
	LossLogistic = "logistic" // the negative logarithm of the probability that a target of 0 or 1 was given
)

// SparseNetwork is what a model of sparse rows is made of beside its name: a linear or logistic regression over many
// columns, or a factorisation of a matrix of ratings. All of it comes from the data set and from model.rank.
type SparseNetwork struct {
	Users int `json:"users,omitempty"` // of ratings: a row has column u, of its user, and Users+i, of its item
	Items int `json:"items,omitempty"`
	Rank  int `json:"rank,omitempty"` // factors of each user and item
	// Offset is what a prediction of ratings starts from: the mean of the training targets.
	Offset float64 `json:"offset,omitempty"`
	Mean   int     `json:"meanEntries"` // entries of a row in the mean, rounded up
	Most   int     `json:"mostEntries"` // of any row
}

// SparseData is what is known of a data set of sparse rows: each has an entry in few of many columns, and its target is
// a number.
type SparseData struct {
	Entries int64 `json:"entries"`        // of all rows, held-out ones too
	Most    int   `json:"mostEntries"`    // of a row
	Ones    bool  `json:"ones,omitempty"` // every entry is 1, and none is stored
	Users   int   `json:"users,omitempty"`
	Items   int   `json:"items,omitempty"`
	// Of the targets of the rows to learn from; Deviation is the standard deviation.
	Mean      float64 `json:"targetMean"`
	Deviation float64 `json:"targetDeviation"`
	Low       float32 `json:"targetLow"`
	High      float32 `json:"targetHigh"`
	Bayes     float64 `json:"bayesLoss,omitempty"` // of a generated data set: the loss of who knows how it was made
}

// Guess is the loss of who knows of the targets only how they are spread, and says the same of every row: their
// variance with LossSquared, their entropy with LossLogistic. A model that has learned anything is below it.
func (d *SparseData) Guess(loss string) float64 {
	if loss != LossLogistic {
		return d.Deviation * d.Deviation
	}
	if !(d.Mean > 0 && d.Mean < 1) {
		return 0
	}
	return -d.Mean*math.Log(d.Mean) - (1-d.Mean)*math.Log1p(-d.Mean)
}

// Ratings tells whether a row is a user's rating of an item.
func (d *SparseData) Ratings() bool { return d.Users > 0 }

// Scores is what held-out rows say of a model of sparse rows besides its loss. Both are zero for networks.
type Scores struct {
	RMSE float64 `json:"rmse,omitempty"` // root of the mean squared error, of targets that are numbers
	AUC  float64 `json:"auc,omitempty"`  // chance that a row of 1 gets a higher score than one of 0
}

// Text is the scores as they are read: "RMSE 0.9412", "AUC 0.7310", "" where there are none.
func (s Scores) Text() string {
	switch {
	case s.RMSE != 0:
		return fmt.Sprintf("RMSE %.4f", s.RMSE)
	case s.AUC != 0:
		return fmt.Sprintf("AUC %.4f", s.AUC)
	default:
		return ""
	}
}

// SparseAsk is what is asked of a model of sparse rows: a prediction for each row, or the best items for users.
type SparseAsk struct {
	Rows  []SparseRow `json:"rows,omitempty"`
	Users []int       `json:"users,omitempty"` // numbers of users, of a model of ratings
	Top   int         `json:"top,omitempty"`   // items for each of them
}

// SparseRow is one row: the columns that it has entries in, each once, and the entries.
type SparseRow struct {
	Index []int32   `json:"index"`
	Value []float32 `json:"value,omitempty"` // nil: 1 each
}

// Recommended is the items that a model expects a user to rate highest, best first.
type Recommended struct {
	User   int       `json:"user"`
	Items  []int     `json:"items"`
	Scores []float32 `json:"scores"`
}
