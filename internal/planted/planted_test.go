package planted

import "testing"

func TestZeroBugIsNone(t *testing.T) {
	var none Bug
	for _, n := range append([]Name{0}, Names...) {
		if none.Is(n) {
			t.Errorf("the zero Bug is %q", n)
		}
	}
}

func TestForTestPlantsOne(t *testing.T) {
	for _, planted := range Names {
		b := ForTest(t, planted)
		for _, n := range Names {
			if b.Is(n) != (n == planted) {
				t.Errorf("%q planted: Is(%q) = %v", planted, n, b.Is(n))
			}
		}
	}
}
