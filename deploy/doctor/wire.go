package doctor

import (
	"context"

	"github.com/disdel/disdel/service"
)

// Of is the examination of a service's cluster: cfg with the parts of the service that were not said. A store that does
// not answer is no error but something to be found.
func Of(ctx context.Context, s *service.Service, cfg Config) (Config, error) {
	var err error
	if cfg.Executor, err = s.Executor(ctx); err != nil {
		return cfg, err
	}
	cfg.Models = s.ModelsURL()
	if board, store, err := s.Board(ctx); err != nil {
		cfg.BoardFailure = err
	} else {
		cfg.Board, cfg.Store = board, &store
	}
	_, cfg.HistoryFailure = s.History(ctx)
	return cfg, nil
}
