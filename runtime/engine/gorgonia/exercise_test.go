package gorgonia_test

import (
	"testing"

	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/runtime/engine/gorgonia"
)

func TestTheBackendKeepsItsPromises(t *testing.T) { enginetest.Exercise(t, gorgonia.Backend{}) }
