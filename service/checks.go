package service

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/executor"
)

// Executor is the side of OpenWhisk, for who checks a cluster part by part. It lives as long as the Service. Nothing is
// asked of an OpenWhisk of the user's yet.
func (s *Service) Executor(ctx context.Context) (*executor.Executor, error) {
	w, err := s.openWhisk(ctx)
	return w.executor, err
}

// Board is the store that actions share, and its address as they are given it. It lives as long as the Service. It
// returns what the servers answer: Denied, Unavailable.
func (s *Service) Board(ctx context.Context) (*aggregator.Store, disdel.Store, error) {
	own, err := s.ownStore(ctx)
	return own.board, own.store, err
}

// ModelsURL is the address of trained models and checkpoints, as actions are given it.
func (s *Service) ModelsURL() string { return s.storage("models") }
