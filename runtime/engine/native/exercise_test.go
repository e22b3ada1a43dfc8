package native_test

import (
	"testing"

	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/runtime/engine/native"
)

func TestTheBackendKeepsItsPromises(t *testing.T) { enginetest.Exercise(t, native.Backend{}) }
