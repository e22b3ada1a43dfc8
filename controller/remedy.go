package controller

import (
	"time"

	"github.com/disdel/disdel"
)

type Remedy struct {
	Retry          bool
	Platform       bool
	Limits         disdel.Limits
	Batch, Workers int
	After          time.Duration
	Adjustment     *disdel.Adjustment
	Why            string
}
