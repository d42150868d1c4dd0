package sim

import (
	"github.com/siltstone-io/siltstone/internal/planted"
	"testing"
)

func TestTmpDet(t *testing.T) {
	for seed := uint64(100); seed <= 220; seed++ {
		_, first := play(t, seed, planted.Bug{}, 0)
		_, again := play(t, seed, planted.Bug{}, 0)
		compareTraces(t, seed, first, again)
	}
}
