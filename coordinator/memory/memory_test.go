package memory_test

import (
	"testing"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/coordinatortest"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/memory"
)

func TestSuite(t *testing.T) {
	coordinatortest.Run(t, func(*testing.T) coordinatortest.Store {
		store := memory.New()
		return func(*testing.T) coordinator.Coordinator { return store.Open() }
	})
}

func TestSuiteThroughFaulty(t *testing.T) {
	coordinatortest.Run(t, func(*testing.T) coordinatortest.Store {
		store := memory.New()
		return func(*testing.T) coordinator.Coordinator { return faulty.Wrap(store.Open(), faulty.Transparent) }
	})
}
