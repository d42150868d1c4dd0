package planted

import (
	"slices"
	"testing"
)

func TestZeroBugIsNone(t *testing.T) {
	var none Bug
	for _, n := range slices.Concat([]Name{0}, Names, Replication) {
		if none.Is(n) {
			t.Errorf("the zero Bug is %q", n)
		}
	}
}

func TestForTestPlantsOne(t *testing.T) {
	all := slices.Concat(Names, Replication)
	for _, planted := range all {
		b := ForTest(t, planted)
		if planted.String() == Name(0).String() {
			t.Errorf("bug %d has no name", planted)
		}
		for _, n := range all {
			if b.Is(n) != (n == planted) {
				t.Errorf("%q planted: Is(%q) = %v", planted, n, b.Is(n))
			}
		}
	}
}
